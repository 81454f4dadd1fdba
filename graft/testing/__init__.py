"""Public fakes for tests of Graft and of programs built on it: a model that says what it is told to."""

from graft.testing.agreeable import agreeable_model, verifier_answer, writer_answer
from graft.testing.model import FakeModel

__all__ = ["FakeModel", "agreeable_model", "verifier_answer", "writer_answer"]
