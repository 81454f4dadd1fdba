"""A model service on this machine that daemons in other processes reach with the real SDK.

It answers at once. A writer's goal names the mark that the diff adds (`mark-p3h2`), so a card says of which head
it is; a verifier supports every claim. Answered calls are counted, because each of them has to be in the ledger.
"""

from __future__ import annotations

import json
import re
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from graft.testing import verifier_answer, writer_answer

MARK = re.compile(r"mark-p\d+h\d+")
_BEHAVIOUR = "The module carries another mark."


class StubModel:
    """Answers `POST /v1/messages`; `url` is the value of ANTHROPIC_BASE_URL. `calls` counts the answers."""

    def __init__(self) -> None:
        self.calls = 0
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=32 * 1024 * 1024)
        app.router.add_post("/v1/messages", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            asked = await request.json()
        except ConnectionError:  # whoever asked was killed meanwhile
            raise web.HTTPBadRequest from None
        answer = reply(asked)
        self.calls += 1
        return web.json_response(
            {
                "id": f"msg_{self.calls}",
                "type": "message",
                "role": "assistant",
                "model": asked["model"],
                "content": [{"type": "text", "text": json.dumps(answer)}],
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1_000, "output_tokens": 100},
            }
        )


def reply(asked: dict[str, Any]) -> dict[str, Any]:
    """The JSON object that answers a request, by the schema it asks for."""
    schema = asked["output_config"]["format"]["schema"]
    if "goal" not in schema["properties"]:
        return verifier_answer(1)
    text = json.dumps(asked["messages"])
    found = MARK.search(text)
    return writer_answer(f"Sets {found[0] if found else 'nothing'}.", [_BEHAVIOUR], "logic")
