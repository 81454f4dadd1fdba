"""`graft e2e`: does a running Graft do on GitHub what it says, seen from outside only.

A list of scenarios is played on a stage (a simulated GitHub, or a sandbox repository on a real one) by doing what
people do and looking at what they see: the comment, the check runs, the daemon's public metrics. Nothing looks
into the database or the broker. Every play has a name of its own, cleans up after itself, and first clears away
what an earlier one that was killed left behind, so it can be run again at any time.
"""

from graft.e2e.playing import Outcome, Played, play
from graft.e2e.report import to_json, to_markdown
from graft.e2e.sandbox import require_sandbox
from graft.e2e.scenarios import SCENARIOS, Scenario
from graft.e2e.stage import Change, Check, Shown, Stage

__all__ = [
    "SCENARIOS",
    "Change",
    "Check",
    "Outcome",
    "Played",
    "Scenario",
    "Shown",
    "Stage",
    "play",
    "require_sandbox",
    "to_json",
    "to_markdown",
]
