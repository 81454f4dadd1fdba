"""What model calls cost, from a table with a date.

Source: the model overview pages on platform.claude.com, read on the date below. Prices are US dollars per
million tokens. Prompt cache: writing for five minutes costs 1.25 times the input, reading a tenth of it. A
model that is not in the table counts as the dearest one in it, so that a budget is never overrun by a name.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import msgspec

from graft.llm.types import LlmRequest, Usage, estimate_tokens

AS_OF: Final = "2026-11-30"

_MILLION = Decimal(1_000_000)
_CACHE_WRITE = Decimal("1.25")
_CACHE_READ = Decimal("0.1")
_CENT_FRACTION = Decimal("0.000001")


class Price(msgspec.Struct, frozen=True):
    """Dollars per million tokens; `long_input` and `long_output` hold for prompts above `long_from` tokens."""

    input: Decimal
    output: Decimal
    long_from: int | None = None
    long_input: Decimal | None = None
    long_output: Decimal | None = None


def _price(input: str, output: str) -> Price:
    return Price(Decimal(input), Decimal(output))


TABLE: Final[dict[str, Price]] = {
    "claude-haiku-5-5": Price(
        Decimal("0.10"), Decimal("0.50"), 100_000, Decimal("0.50"), Decimal("2.50")
    ),
    "claude-haiku-4-5": _price("1", "5"),
    "claude-sonnet-5-5": _price("2", "10"),
    "claude-sonnet-5": _price("2", "10"),
    "claude-sonnet-4-6": _price("3", "15"),
    "claude-sonnet-4-5": _price("3", "15"),
    "claude-opus-5-5": _price("4", "20"),
    "claude-opus-5": _price("5", "25"),
    "claude-opus-4-8": _price("5", "25"),
    "claude-opus-4-7": _price("5", "25"),
    "claude-opus-4-6": _price("5", "25"),
    "claude-opus-4-5": _price("5", "25"),
    "claude-fable-5-1": _price("10", "50"),
}  # fmt: skip


def price_of(model: str) -> Price:
    """The price of a model id, with or without its date; the dearest one known for any other name."""
    name = model
    if name not in TABLE and len(name) > 9 and name[-9] == "-" and name[-8:].isdecimal():
        name = name[:-9]
    return TABLE.get(name) or max(TABLE.values(), key=lambda price: price.output)


def cost(model: str, usage: Usage) -> Decimal:
    """Dollars for what was used, to the millionth."""
    price = price_of(model)
    per_input, per_output = price.input, price.output
    if price.long_from is not None and usage.prompt_tokens > price.long_from:
        per_input, per_output = price.long_input or per_input, price.long_output or per_output
    dollars = (
        per_input
        * (
            usage.input_tokens
            + _CACHE_WRITE * usage.cache_write_tokens
            + _CACHE_READ * usage.cache_read_tokens
        )
        + per_output * usage.output_tokens
    ) / _MILLION
    return dollars.quantize(_CENT_FRACTION)


def at_most(request: LlmRequest) -> Decimal:
    """What a call can cost: its whole prompt written to the cache and every output token used."""
    return cost(
        request.model, Usage(cache_write_tokens=prompt_tokens(request), output_tokens=request.max_tokens)
    )


def prompt_tokens(request: LlmRequest) -> int:
    """The estimated size of a request's prompt."""
    texts = (request.system, str(request.schema), *(turn.text for turn in request.turns))
    return sum(estimate_tokens(text) for text in texts)
