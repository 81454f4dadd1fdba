"""May this account use this model? Asked of the list of models, which costs nothing."""

from __future__ import annotations

import asyncio

from graft.llm.anthropic import _of_status, _sdk_client
from graft.llm.types import Outcome

_SECONDS = 15.0


async def model_access(
    model: str, *, api_key: str | None, auth_token: str | None, base_url: str | None
) -> Outcome:
    """`ok`, or why the model cannot be used. A gateway that has no list of models says `unknown_model`."""
    import anthropic

    sdk = _sdk_client(api_key, None if api_key else auth_token, base_url)
    try:
        async with asyncio.timeout(_SECONDS):
            await sdk.models.retrieve(model)
    except (anthropic.APITimeoutError, TimeoutError):
        return Outcome.TIMEOUT
    except anthropic.APIConnectionError:
        return Outcome.CONNECTION
    except anthropic.APIStatusError as error:
        return _of_status(error, model).outcome
    except anthropic.AnthropicError:
        return Outcome.BAD_RESPONSE
    finally:
        await sdk.close()
    return Outcome.OK
