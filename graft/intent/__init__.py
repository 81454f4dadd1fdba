"""What a change really does: the rule-based risk floor, the intent card and its section of the comment.

inputs = CardInputs(snapshot=…, title=…, body=…)
card_without_model(inputs)                          rules only, at once
await write_card(inputs, llm, models, gate=…)       writer and verifier
render_section(card), check_output(card)            what a reader sees
"""

from graft.intent.buttons import BUTTON_TEXTS, BUTTONS
from graft.intent.card import (
    Card,
    OutOfScope,
    Pointer,
    Statement,
    Status,
    Verdict,
    VerifierStatus,
    final_risk,
)
from graft.intent.excerpt import Omission
from graft.intent.fingerprint import diff_fingerprint
from graft.intent.floor import Floor, Reason, assess
from graft.intent.injection import Suspicion, suspect
from graft.intent.linked import issue_candidates
from graft.intent.prompts import PROMPT_VERSION
from graft.intent.render import check_output, render_section
from graft.intent.writing import (
    CardInputs,
    Clause,
    LinkedIssue,
    Models,
    card_without_model,
    carry_over,
    input_hash,
    write_card,
)

__all__ = [
    "BUTTONS",
    "BUTTON_TEXTS",
    "PROMPT_VERSION",
    "Card",
    "CardInputs",
    "Clause",
    "Floor",
    "LinkedIssue",
    "Models",
    "Omission",
    "OutOfScope",
    "Pointer",
    "Reason",
    "Statement",
    "Status",
    "Suspicion",
    "Verdict",
    "VerifierStatus",
    "assess",
    "card_without_model",
    "carry_over",
    "check_output",
    "diff_fingerprint",
    "final_risk",
    "input_hash",
    "issue_candidates",
    "render_section",
    "suspect",
    "write_card",
]
