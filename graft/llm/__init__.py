"""Language models behind one small protocol: requests and results, prices, one question with its repair.

Importing this package loads no SDK; `connect` does, when it has credentials to use.
"""

from graft.llm.access import model_access
from graft.llm.anthropic import AnthropicClient, connect
from graft.llm.ask import AnswerError, Asked, Permit, SpendGate, Unmetered, ask
from graft.llm.decode import JsonError, decode_object
from graft.llm.types import (
    LlmClient,
    LlmRequest,
    LlmResult,
    NoModel,
    Outcome,
    Turn,
    Usage,
    estimate_tokens,
)

FAST_MODEL = "claude-haiku-5-5"
STRONG_MODEL = "claude-opus-5-5"

__all__ = [
    "FAST_MODEL",
    "STRONG_MODEL",
    "AnswerError",
    "AnthropicClient",
    "Asked",
    "JsonError",
    "LlmClient",
    "LlmRequest",
    "LlmResult",
    "NoModel",
    "Outcome",
    "Permit",
    "SpendGate",
    "Turn",
    "Unmetered",
    "Usage",
    "ask",
    "connect",
    "decode_object",
    "estimate_tokens",
    "model_access",
]
