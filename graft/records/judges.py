"""Judges that need no network: a person at a terminal, and a script of answers for tests and fixtures.

Which judge answers is chosen by the model id alone. Judges behind an SDK are found through `Routes`, which the
installed command fills; a vendored script has none and names the package instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import canonical
from .files import FileRefusedError, Tree
from .judging import Evaluator, JudgeError, Request

HUMAN = "human"
SCRIPTED = "scripted"
PRICES = {"typesafe": 0.042, "openrouter": 0.042, "vercel": 0.042}
"""US dollars for a million input tokens of Jev 1.13, as its vendor and both gateways list it (October 2026)."""

_HUMAN = re.compile(r"human/([^\x00-\x1f\x7f/]{1,80})(?:/([0-9]{4}-[0-9]{2}-[0-9]{2}))?\Z")


def route(model: str) -> str:
    """Which judge a model id asks for: human, scripted, openrouter, vercel, anthropic or typesafe; or nothing."""
    if model.startswith("human/"):
        return HUMAN
    if model.startswith("scripted/"):
        return SCRIPTED
    if re.match(r"~?typesafe/.", model):
        return "openrouter"
    if model.startswith("typesafe-ai/"):
        return "vercel"
    if model.startswith("claude-"):
        return "anthropic"
    return "typesafe" if model.startswith("jev-") else ""


def human_model(model: str, today: str) -> str:
    """`human/NAME/DATE`, with the date of today when it is left out. Raises JudgeError."""
    match = _HUMAN.match(model)
    if match is None or not match.group(1).strip():
        raise JudgeError("judge-unavailable", "a human judgment is recorded as `human/NAME`")
    if match.group(2) not in (None, today):
        raise JudgeError("judge-unavailable", "a human judgment carries the date on which it is given")
    return f"human/{match.group(1).strip()}/{today}"


@dataclass(frozen=True)
class HumanJudge:
    """Asks a person. `ask` shows a prompt and returns the line that was typed; `show` prints text."""

    ask: Callable[[str], str]
    show: Callable[[str], None]

    def evaluate(self, request: Request) -> object:
        self.show(f"\n--- {request.phase}{' of module ' + request.module if request.module else ''} ---\n")
        if request.phase == "coverage":
            self.show(request.state["record"] + "\n\n" + request.state["laws"] + "\n")
        answers = {name: self._answer(name, question) for name, question in request.questions.items()}
        return {"model": request.model, "answers": answers}

    def _answer(self, name: str, question: object) -> dict[str, object]:
        if not isinstance(question, Mapping):
            raise JudgeError("judge-answer", f"question {name} has no form")
        self.show(f"\n{name}: {question['instructions']}\n")
        if question["type"] == "noul":
            return {"type": "noul", "noul": self._number("probability that it is true, 0 to 1: ")}
        options = list(question["criteria"])
        self.show("options: " + ", ".join(options) + "\n")
        chosen = self._option(options)
        return choice_answer(chosen, self._number("how sure are you, 0 to 1: "), options)

    def _option(self, options: list[str]) -> str:
        for _ in range(5):
            typed = self.ask("law: ").strip()
            if typed in options:
                return typed
            self.show("that is none of the options\n")
        raise JudgeError("judge-answer", "no option was chosen")

    def _number(self, prompt: str) -> float:
        for _ in range(5):
            typed = self.ask(prompt).strip()
            if re.match(r"(?:0(?:\.[0-9]+)?|1(?:\.0+)?)\Z", typed):
                return float(typed)
            self.show("write a number from 0 to 1, like 0.95\n")
        raise JudgeError("judge-answer", "no number was given")


def choice_answer(chosen: str, confidence: float, options: list[str]) -> dict[str, object]:
    """A choice whose probability is the stated confidence; the rest is spread evenly over the other options."""
    others = [option for option in options if option != chosen]
    probabilities = {option: (1 - confidence) / len(others) for option in others}
    probabilities[chosen] = confidence if others else 1.0
    return {"type": "choice", "choice": chosen, "confidence": confidence, "probabilities": probabilities}


@dataclass(frozen=True)
class ScriptedJudge:
    """Answers from a file. A receipt made with it is a fixture: its model id begins with `scripted/`.

    The file is JSON: `coverage` maps a clause to a law or to a full answer, `fidelity` a law to a number.
    """

    coverage: Mapping[str, object]
    fidelity: Mapping[str, object]

    @classmethod
    def read(cls, tree: Tree, path: str) -> ScriptedJudge:
        """Raises JudgeError."""
        try:
            value = canonical.loads(tree.read(path).decode("utf-8"))
        except FileRefusedError as error:
            raise JudgeError("judge-unavailable", f"the script of answers {error.message}") from None
        except (UnicodeDecodeError, canonical.JsonError):
            raise JudgeError("judge-unavailable", "the script of answers is not JSON") from None
        parts = [value.get(key) for key in ("coverage", "fidelity")] if isinstance(value, dict) else []
        if len(parts) != 2 or not all(isinstance(part, dict) for part in parts):
            raise JudgeError(
                "judge-unavailable", "the script of answers has no `coverage` and `fidelity` objects"
            )
        return (
            cls(dict(value["coverage"]), dict(value["fidelity"])) if isinstance(value, dict) else cls({}, {})
        )

    def evaluate(self, request: Request) -> object:
        answers: dict[str, object] = {}
        for name, question in request.questions.items():
            source = self.coverage if request.phase == "coverage" else self.fidelity
            given = source.get(name)
            if request.phase == "coverage" and isinstance(given, str) and isinstance(question, Mapping):
                answers[name] = choice_answer(given, 1.0, list(question["criteria"]))
            elif request.phase == "fidelity" and isinstance(given, float):
                answers[name] = {"type": "noul", "noul": given}
            elif given is not None:
                answers[name] = given
        return {"model": request.model, "answers": answers}


Routes = Mapping[str, Callable[[str, Mapping[str, str]], Evaluator]]
"""Route name to a function of (model id, environment) that makes a judge behind an SDK; raises JudgeError."""

PACKAGES = {
    "typesafe": "typesafe-sdk and TYPESAFE_API_KEY",
    "openrouter": "typesafe-sdk and OPENROUTER_API_KEY",
    "vercel": "typesafe-sdk and AI_GATEWAY_API_KEY",
    "anthropic": "graft-review and ANTHROPIC_API_KEY",
}
"""What each network judge needs."""


def networked(model: str, name: str, routes: Routes, env: Mapping[str, str]) -> Evaluator:
    """The judge of a network route. Raises JudgeError that names what is needed when it is not available here."""
    if name not in PACKAGES:
        known = "human/NAME, scripted/NAME, jev-…, typesafe/…, typesafe-ai/… or claude-…"
        raise JudgeError("judge-unavailable", f"no judge has this model id; known are {known}")
    if name not in routes:
        raise JudgeError(
            "judge-unavailable", f"this judge needs `graft records receipt` with {PACKAGES[name]}"
        )
    return routes[name](model, env)
