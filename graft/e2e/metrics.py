"""Standing votes, as the daemon's metrics show them to everybody."""

from __future__ import annotations

import asyncio
import http.client
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from graft.errors import ConfigError, TransientError

_LARGEST = 16 * 2**20
_SECONDS = 10


async def read_votes(url: str) -> dict[tuple[str, str], int]:
    """Votes by (verdict, source). Raises TransientError when there is no usable answer, ConfigError for a URL that
    is none of the web's."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigError(["--metrics: not a URL that starts with http:// or https://"])
    try:
        text = await asyncio.to_thread(_fetch, url)
    except urllib.error.HTTPError as error:
        raise TransientError(f"the metrics answered {error.code}", reason="metrics") from None
    except (OSError, http.client.HTTPException) as error:
        raise TransientError(
            f"the metrics do not answer ({type(error).__name__})", reason="metrics"
        ) from None
    try:
        return {
            (sample.labels["verdict"], sample.labels["source"]): int(sample.value)
            for family in text_string_to_metric_families(text)
            if family.name == "graft_votes"
            for sample in family.samples
        }
    except (KeyError, ValueError):
        raise TransientError("the metrics are not those of Graft", reason="metrics") from None


def _fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=_SECONDS) as response:  # noqa: S310 - the scheme was looked at
        body: bytes = response.read(_LARGEST)
    return body.decode("utf-8", "replace")
