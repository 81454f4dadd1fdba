from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import get_args

from anthropic.types import Model
from hypothesis import given
from hypothesis import strategies as st

from graft.llm import FAST_MODEL, STRONG_MODEL, LlmRequest, Turn, Usage, estimate_tokens, prices


def test_the_default_models_are_known_to_the_sdk_and_priced() -> None:
    known = get_args(get_args(Model)[0])
    for model in (FAST_MODEL, STRONG_MODEL):
        assert model in known
        assert model in prices.TABLE
    assert date.fromisoformat(prices.AS_OF).year >= 2026


def test_a_call_is_priced_by_kind_of_token() -> None:
    usage = Usage(input_tokens=1_000, output_tokens=500, cache_read_tokens=10_000, cache_write_tokens=2_000)
    # (1000 + 1.25 * 2000 + 0.1 * 10000) * 4 + 500 * 20 = 28000 millionths
    assert prices.cost("claude-opus-5-5", usage) == Decimal("0.028000")


def test_long_prompts_can_cost_more() -> None:
    assert prices.cost("claude-haiku-5-5", Usage(input_tokens=100_000)) == Decimal("0.01")
    assert prices.cost("claude-haiku-5-5", Usage(input_tokens=60_000, cache_read_tokens=50_000)) == Decimal(
        "0.0325"
    )


def test_dated_ids_are_their_model() -> None:
    assert prices.price_of("claude-haiku-4-5-20251001") == prices.TABLE["claude-haiku-4-5"]


def test_an_unknown_model_counts_as_the_dearest() -> None:
    for model in ("", "llama", "claude-opus-9", "-20251001", "claude-haiku-5-5-preview"):
        assert prices.price_of(model).output == max(p.output for p in prices.TABLE.values())


tokens = st.integers(0, 5_000_000)


@given(
    st.sampled_from(sorted(prices.TABLE)),
    st.builds(
        Usage, input_tokens=tokens, output_tokens=tokens, cache_read_tokens=tokens, cache_write_tokens=tokens
    ),
    st.builds(Usage, input_tokens=tokens, output_tokens=tokens),
)
def test_more_tokens_never_cost_less(model: str, usage: Usage, more: Usage) -> None:
    assert prices.cost(model, usage + more) >= prices.cost(model, usage) >= 0


def test_the_most_that_a_call_can_cost() -> None:
    request = LlmRequest(
        purpose="p",
        model="claude-opus-5-5",
        system="s" * 4_000,
        turns=(Turn("user", "é" * 4_000),),
        schema={},
        max_tokens=8_000,
        timeout=1,
    )
    used = Usage(input_tokens=prices.prompt_tokens(request), output_tokens=8_000)
    assert prices.at_most(request) >= prices.cost("claude-opus-5-5", used)
    assert prices.prompt_tokens(request) == 1601 + 3201 + 1


@given(st.text())
def test_estimates_are_positive_and_grow(text: str) -> None:
    assert 0 < estimate_tokens(text) <= estimate_tokens(text + "more text")
