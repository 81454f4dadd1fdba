"""Standing votes, as the daemon's metrics show them to everybody."""

from __future__ import annotations

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from graft.errors import TransientError

_LARGEST = 16 * 2**20


async def read_votes(http: aiohttp.ClientSession, url: str) -> dict[tuple[str, str], int]:
    """Votes by (verdict, source). Raises TransientError when there is no usable answer."""
    try:
        async with http.get(url, timeout=aiohttp.ClientTimeout(total=10)) as response:
            text = (await response.content.read(_LARGEST)).decode("utf-8", "replace")
            status = response.status
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise TransientError(
            f"the metrics do not answer ({type(error).__name__})", reason="metrics"
        ) from None
    if status != 200:
        raise TransientError(f"the metrics answered {status}", reason="metrics")
    try:
        return {
            (sample.labels["verdict"], sample.labels["source"]): int(sample.value)
            for family in text_string_to_metric_families(text)
            if family.name == "graft_votes"
            for sample in family.samples
        }
    except (KeyError, ValueError):
        raise TransientError("the metrics are not those of Graft", reason="metrics") from None
