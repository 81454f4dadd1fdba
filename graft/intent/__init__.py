"""What a change really does: the rule-based risk floor, the intent card and its section of the comment."""

from graft.intent.floor import Floor, Reason, assess
from graft.intent.injection import Suspicion, suspect

__all__ = ["Floor", "Reason", "Suspicion", "assess", "suspect"]
