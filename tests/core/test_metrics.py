from __future__ import annotations

from graft.metrics import CONTENT_TYPE, Metrics


def test_two_daemons_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.deliveries.labels("push", "accepted").inc()
    assert b'graft_deliveries_total{event="push",outcome="accepted"} 1.0' in one.render()
    assert b"push" not in other.render()


def test_calls_to_github_are_counted_by_route_and_status() -> None:
    metrics = Metrics()
    metrics.github_call("/repos/{owner}/{repo}/pulls/{number}", "GET", 200, 0.1, 7)
    metrics.github_call("/repos/{owner}/{repo}/pulls/{number}", "GET", None, 5.0, 7)
    labels = {"method": "GET", "route": "/repos/{owner}/{repo}/pulls/{number}"}
    for status in ("200", "none"):
        found = metrics.registry.get_sample_value("graft_github_calls_total", {**labels, "status": status})
        assert found == 1
    assert metrics.registry.get_sample_value("graft_github_seconds_count") == 2


def test_every_name_begins_with_graft_and_the_format_is_prometheus() -> None:
    metrics = Metrics()
    names = {line.split()[2].decode() for line in metrics.render().splitlines() if line.startswith(b"# TYPE")}
    assert names
    assert all(name.startswith("graft_") for name in names)
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")
