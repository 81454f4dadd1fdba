"""Measures intent cards before a user does: cases with a known truth, scores, runs as files, comparisons, histories.

    cases = load_cases(Path("eval/cases"))
    made = await run(cases, Scripted("lazy"))          or Replay.load(…), or Live(…) with any `LlmClient`
    save_run(path, made.run); save_recording(path, made.header, made.recorded)
    compare(load_run(a), load_run(b))

Cards are made through the public face of `graft.intent`, as in production. Nothing here knows of a database, a broker,
GitHub or settings.
"""

from graft.evaluation.authoring import write_draft
from graft.evaluation.calls import Budget, Probe, Subject
from graft.evaluation.cases import Case, CaseError, Kind, problems
from graft.evaluation.cases import load_all as load_cases
from graft.evaluation.comparing import Comparison, compare
from graft.evaluation.judge import Judge
from graft.evaluation.mined_report import Report, report
from graft.evaluation.mining import Mined, mine
from graft.evaluation.mining import read as read_mined
from graft.evaluation.recording import Replay
from graft.evaluation.recording import save as save_recording
from graft.evaluation.running import Made, run
from graft.evaluation.runs import Run
from graft.evaluation.runs import load as load_run
from graft.evaluation.runs import save as save_run
from graft.evaluation.scores import METRICS, Metric
from graft.evaluation.scripted import Scripted
from graft.evaluation.subjects import Live, subjects
from graft.evaluation.tables import case_table, comparison_text, mined_text, score_table
from graft.evaluation.thresholds import Thresholds
from graft.evaluation.thresholds import load as load_thresholds

__all__ = [
    "METRICS",
    "Budget",
    "Case",
    "CaseError",
    "Comparison",
    "Judge",
    "Kind",
    "Live",
    "Made",
    "Metric",
    "Mined",
    "Probe",
    "Replay",
    "Report",
    "Run",
    "Scripted",
    "Subject",
    "Thresholds",
    "case_table",
    "compare",
    "comparison_text",
    "load_cases",
    "load_run",
    "load_thresholds",
    "mine",
    "mined_text",
    "problems",
    "read_mined",
    "report",
    "run",
    "save_recording",
    "save_run",
    "score_table",
    "subjects",
    "write_draft",
]
