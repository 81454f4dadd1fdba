"""Dashboard and alert rules show only numbers that a daemon has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from graft.bus import BusUnavailable, StreamFull
from graft.llm import Outcome
from graft.metrics import Metrics

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "graft.json"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
# What Prometheus adds to every series.
ADDED = {"instance", "job"}


def series() -> dict[str, set[str]]:
    """Every series of a daemon with its labels."""
    found: dict[str, set[str]] = {}
    for metric in (value for value in vars(Metrics()).values() if hasattr(value, "_labelnames")):
        labels = set(metric._labelnames)
        suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
        for suffix in suffixes[metric._type]:
            found[metric._name + suffix] = labels | ({"le"} if suffix == "_bucket" else set())
    return found


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return found


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def expressions() -> list[str]:
    shown = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]
    return shown + [rule["expr"] for rule in rules()]


def named(expression: str) -> set[tuple[str, frozenset[str]]]:
    """(series, labels it is selected by) of an expression."""
    found = re.findall(r"(graft_[a-z_]+)(?:\{([^}]*)\})?", expression)
    return {(name, frozenset(re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)", labels))) for name, labels in found}


@pytest.mark.parametrize("expression", expressions())
def test_only_series_that_exist_are_shown(expression: str) -> None:
    known = series()
    used = named(expression)
    assert used
    for name, labels in used:
        assert name in known, f"{name} is no series of graft.metrics"
        assert labels <= known[name], f"{name} has no label {sorted(labels - known[name])}"
    kept = {label for part in re.findall(r"by \(([^)]*)\)", expression) for label in part.split(", ")}
    everything = set().union(*(known[name] for name, _ in used))
    assert kept <= everything | ADDED
    assert expression.count("(") == expression.count(")")


def test_every_metric_is_on_the_dashboard_or_in_an_alert() -> None:
    used = {name for expression in expressions() for name, _ in named(expression)}
    metrics = {re.sub(r"_(total|bucket|sum|count)\Z", "", name) for name in series()}
    assert metrics == {re.sub(r"_(total|bucket|sum|count)\Z", "", name) for name in used}


def test_legends_name_labels_that_the_expression_keeps() -> None:
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            wanted = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            kept = {
                label for part in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in part.split(", ")
            }
            assert wanted <= kept | ADDED, panel["title"]


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_every_alert_says_what_it_means_and_what_to_look_at() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert set(rule["annotations"]) == {"summary", "description"}
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))


def test_the_outcomes_in_the_rules_are_real_ones() -> None:
    text = ALERTS.read_text(encoding="utf-8")
    [outcomes] = re.findall(r'outcome=~"([^"]+)"', text)
    assert {BusUnavailable("").reason, StreamFull().reason, "busy"} == set(outcomes.split("|"))
    source = (ROOT / "graft" / "ingress.py").read_text(encoding="utf-8")
    assert '"busy"' in source
    assert '"bad_signature"' in source
    assert str(Outcome.OK) == "ok"


async def test_a_source_that_is_away_shows_no_old_number() -> None:
    metrics = Metrics()
    away = False

    async def look() -> None:
        if away:
            raise OSError("gone")
        metrics.backlog_messages.set(7)

    metrics.sample("broker", look, metrics.backlog_messages)
    assert b"graft_backlog_messages 7.0" in await metrics.scrape()
    away = True
    metrics._sampled_at = -10.0
    shown = (await metrics.scrape()).decode()
    assert "graft_backlog_messages NaN" in shown
    assert 'graft_sample_failures_total{source="broker"} 1.0' in shown
