"""Chaos: processes die, freeze, lose connections and meet a misbehaving GitHub while pull requests are worked on.

Real NATS, Postgres and two replicas of `graft serve` under a steady load of events; faults at seeded moments;
afterwards the simulated GitHub and the database say whether anything was lost, doubled or left wrong. Trials
follow each other on the same servers, each with repositories of its own, and every trial is judged a second
time when the next has ended: what a replica wrote after losing its lease must not stand by then.

    python -m proof chaos --runs 200 --seed 1
    python -m proof chaos --runs 1 --seed 117      # the trial of that seed again
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import msgspec
import uvloop

from bench.tables import Table, publish
from graft.bus import BusUnavailable
from graft.simulator import Delivery
from graft.simulator.repository_git import GitRepository
from proof.evidence import STANDING, gather
from proof.faults import KILLS, OTHERS, Planned, schedule
from proof.ground import Ground, Unsettled, prepared
from proof.injection import HANDOVER, MEANWHILE, Injector
from proof.judge import Fault, judge
from proof.load import Load, Material, build, refused

LOAD_SECONDS = 5.0
EVENTS = 60
KILLS_A_RUN = 5
OTHERS_A_RUN = 5
QUIET_SECONDS = 60.0
# A stale write is repaired within seconds; judged again after this time at the earliest.
DUST_SECONDS = 10.0
TAKEOVER_AIM = 5.0
HANDOVER_AIM = 1.0


class Trial(msgspec.Struct, kw_only=True):
    """One seed: what was planned, what was sent, and what the judge found."""

    seed: int
    planned: list[Planned]
    load: Load
    injector: Injector
    deliveries: list[Delivery] = msgspec.field(default_factory=list)
    model_calls: int = 0
    ended: float = 0.0
    accepted: int = 0
    found: list[Fault] = msgspec.field(default_factory=list)
    parts: dict[str, float] = msgspec.field(default_factory=dict)


class Tally(msgspec.Struct, kw_only=True):
    """What all trials together came to."""

    runs: int = 0
    accepted: int = 0
    pulls: int = 0
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    found: Counter[str] = msgspec.field(default_factory=Counter)
    seconds: defaultdict[str, list[float]] = msgspec.field(default_factory=lambda: defaultdict(list))
    drained: list[int] = msgspec.field(default_factory=list)
    failed: list[int] = msgspec.field(default_factory=list)


async def run_trial(ground: Ground, material: Material, git: GitRepository, seed: int) -> Trial:
    """One seed from its first event to its verdict."""
    began = time.monotonic()
    del ground.simulator.deliveries[:]  # the trials before are judged from copies
    planned = schedule(seed, seconds=LOAD_SECONDS, kills=KILLS_A_RUN, others=OTHERS_A_RUN)
    load = Load(ground.simulator, material, git, name=f"s{seed}")
    injector = Injector(ground, load)
    trial = Trial(seed=seed, planned=planned, load=load, injector=injector)
    calls = ground.model.calls
    operator = asyncio.create_task(load.redeliver())
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(injector.run(planned))
            group.create_task(load.run(seconds=LOAD_SECONDS, events=EVENTS))
        injector.quiet.set()
        trial.parts["load"] = time.monotonic() - began
        await injector.settle()
        trial.parts["repair"] = time.monotonic() - began
        await until_quiet(ground)
    except Unsettled as error:
        trial.found.append(Fault(kind="left", what=str(error)))
    finally:
        operator.cancel()
        await asyncio.gather(operator, return_exceptions=True)
    trial.deliveries = list(ground.simulator.deliveries)
    trial.model_calls = ground.model.calls - calls
    trial.found += await _verdict(ground, trial)
    trial.ended = time.monotonic()
    trial.parts["quiet"] = trial.ended - began
    return trial


async def _verdict(ground: Ground, trial: Trial) -> list[Fault]:
    evidence = await gather(
        ground, trial.load, trial.deliveries, trial.injector.poison, model_calls=trial.model_calls
    )
    trial.accepted = sum(one.accepted for one in evidence.sent)
    found = judge(evidence)
    found += [
        Fault(kind="wrong", what=f"a drained replica ended with {code}")
        for code in trial.injector.exits
        if code
    ]
    return found


async def until_quiet(ground: Ground) -> None:
    """Until everything sent was taken, nothing is left to do and both replicas are back. Waits for retries and
    late verifications are cut short: when they run is not what is judged here."""

    async def quiet() -> bool:
        await ground.simulator.drain()
        if refused(ground.simulator.deliveries):
            return False
        await ground.fetch(
            "UPDATE work SET due_at = now() WHERE dead_at IS NULL AND due_at > now() + interval '2 seconds'"
            f" AND {STANDING} RETURNING 1"
        )
        [row] = await ground.fetch(
            "SELECT (SELECT count(*) FROM replicas WHERE seen_until > now() AND NOT draining) AS replicas,"
            " (SELECT count(*) FROM pending_votes) AS votes,"
            f" (SELECT count(*) FROM work WHERE dead_at IS NULL AND {STANDING}) AS work"
        )
        if row["work"] or row["votes"] or row["replicas"] != len(ground.replicas):
            return False
        try:
            return (await ground.bus.backlog()).messages == 0
        except BusUnavailable:
            return False

    await ground.until("not quiet", quiet, seconds=QUIET_SECONDS, every=0.1)


async def run(seeds: range, *, verbose: bool = False, logs: Path | None = None) -> Tally:
    """All trials; failing ones are printed with their seed and schedule."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="graft-chaos-") as name:
        directory = Path(name)
        material = build(directory / "shop.git")
        git = GitRepository(material.path)
        try:
            async with prepared(directory, logs=logs) as ground:
                before: Trial | None = None
                for seed in seeds:
                    trial = await run_trial(ground, material, git, seed)
                    await _judge_again(ground, before, tally)
                    _count(trial, tally, verbose=verbose)
                    before = trial
                if before is not None:
                    await asyncio.sleep(max(0.0, before.ended + DUST_SECONDS - time.monotonic()))
                    await _judge_again(ground, before, tally)
        finally:
            await git.close()
    return tally


async def _judge_again(ground: Ground, trial: Trial | None, tally: Tally) -> None:
    """Whether the verdict on a trial still stands, ten seconds and more after it was given."""
    if trial is None or trial.found:
        return
    later = await _verdict(ground, trial)
    if later:
        trial.found = [msgspec.structs.replace(one, what=f"{one.what} (later)") for one in later]
        _fail(trial, tally)


def _count(trial: Trial, tally: Tally, *, verbose: bool) -> None:
    tally.runs += 1
    tally.accepted += trial.accepted
    tally.pulls += len(trial.load.opened)
    tally.faults.update(trial.injector.done)
    tally.drained += trial.injector.exits
    for name, seconds in trial.injector.seconds.items():
        tally.seconds[name] += seconds
    if trial.found:
        _fail(trial, tally)
    if verbose:
        parts = " ".join(f"{name} {seconds:.1f}" for name, seconds in trial.parts.items())
        print(f"seed {trial.seed}: {trial.accepted} deliveries; {parts} s", file=sys.stderr, flush=True)


def _fail(trial: Trial, tally: Tally) -> None:
    """Say what was found and what had been done, so that the seed can be tried again."""
    tally.failed.append(trial.seed)
    tally.found.update(fault.kind for fault in trial.found)
    lines = [f"seed {trial.seed} failed; the faults:", *(f"  {planned}" for planned in trial.planned)]
    lines += ["the judge:", *(f"  {fault.kind}: {fault.what}" for fault in trial.found)]
    print("\n".join(lines), flush=True)


def table(tally: Tally, *, seed: int) -> Table:
    """What happened, with the aims."""
    kills = sum(tally.faults[kind] * (2 if "both" in kind else 1) for kind in KILLS)
    rows = [
        ["trials", str(tally.runs), "", ""],
        ["processes killed", str(kills), "1000", _verdict_of(kills >= 1000, "fewer trials")],
        *([kind, str(tally.faults[kind]), "", ""] for kind in (*KILLS, *OTHERS)),
        ["deliveries accepted", str(tally.accepted), "", ""],
        ["pull requests", str(tally.pulls), "", ""],
    ]
    for kind, what in (
        ("lost", "lost"),
        ("doubled", "duplicates"),
        ("wrong", "wrong or stale"),
        ("left", "left undone"),
    ):
        count = tally.found[kind]
        rows.append([what, str(count), "0", _verdict_of(not count, "missed")])
    for name in sorted(tally.seconds):
        figures = _figures(tally.seconds[name])
        if MEANWHILE in name:
            rows.append([name, _times(figures), "", ""])
        else:
            aim = HANDOVER_AIM if name == HANDOVER else TAKEOVER_AIM
            rows.append([name, _times(figures), f"{aim:.0f} s", _verdict_of(figures[2] <= aim, "missed")])
    return Table(
        name="chaos",
        command=f"make chaos N={tally.runs} SEED={seed}",
        columns=["what", "found", "aim", "verdict"],
        rows=rows,
        conditions={
            "seeds": f"{seed} to {seed + tally.runs - 1}",
            "servers": "NATS with sync_interval always, durable Postgres, two replicas, all on this machine",
            "times": "p50 / p99 / max (count)",
        },
    )


def _figures(seconds: list[float]) -> tuple[float, float, float, int]:
    if len(seconds) < 2:
        return (seconds[0], seconds[0], seconds[0], 1)
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return cuts[49], cuts[98], max(seconds), len(seconds)


def _times(figures: tuple[float, float, float, int]) -> str:
    p50, p99, most, count = figures
    return f"{p50:.2f} / {p99:.2f} / {most:.2f} s ({count})"


def _verdict_of(met: bool, otherwise: str) -> str:
    return "met" if met else otherwise


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="proof chaos", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="how many seeds, one after the other")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--verbose", action="store_true", help="say how long each trial took")
    parser.add_argument("--logs", type=Path, help="a directory for what the replicas say")
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    options = parser.parse_args(arguments)
    seeds = range(options.seed, options.seed + options.runs)
    # It reports every connection that a killed Postgres refuses.
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)
    with contextlib.suppress(KeyboardInterrupt):
        tally = uvloop.run(run(seeds, verbose=options.verbose, logs=options.logs))
        publish(table(tally, seed=options.seed), write=options.write)
        return 1 if tally.failed else 0
    return 130
