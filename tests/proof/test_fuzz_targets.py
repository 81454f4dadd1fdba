"""The fuzz targets: the kept corpus, what hypothesis makes of it, and a fault that the fuzzer has to find."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.tables import render
from proof import fuzz
from proof.fuzz_input import CORPUS, SEPARATOR, Target, TooSlow, corpus, fields, run
from proof.fuzz_mutation import changed_json, mutated
from proof.fuzz_targets import TARGETS
from proof.fuzz_worker import has_atheris
from tests.proof import planted

SEEDS = {name: [path.read_bytes() for path in corpus(name)] for name in TARGETS}


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_kept_inputs_find_nothing_any_more(name: str) -> None:
    assert SEEDS[name], "a target without inputs to start from"
    for path, data in zip(corpus(name), SEEDS[name], strict=True):
        try:
            run(TARGETS[name], data)
        except Exception as error:
            error.add_note(str(path))
            raise


def test_the_corpus_is_small_and_belongs_to_targets() -> None:
    folders = {path.name for path in CORPUS.iterdir()}
    assert folders == set(TARGETS)
    sizes = [path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()]
    assert max(sizes) <= 4096
    assert sum(sizes) < 1_000_000


def inputs(name: str) -> st.SearchStrategy[bytes]:
    """Kept inputs changed by a seed, and pieces of the target's language in any order."""
    target = TARGETS[name]
    changed = st.integers(0, 2**32).map(lambda seed: mutated(target, SEEDS[name], random.Random(seed)))
    pieces = st.sampled_from((*target.words, SEPARATOR, b"\n", b" "))
    return st.one_of(
        st.binary(max_size=200),
        changed,
        st.lists(st.one_of(pieces, st.binary(max_size=8)), max_size=40).map(b"".join),
    )


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_whatever_comes_in_the_invariants_hold(name: str) -> None:
    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(inputs(name))
    def holds(data: bytes) -> None:
        run(TARGETS[name], data[: TARGETS[name].longest])

    holds()


# ------------------------------------------------------------------------------------------------------ the fuzzer


@pytest.mark.parametrize("engine", ["atheris", "mutation"])
def test_a_planted_fault_is_found_and_kept(engine: str, tmp_path: Path) -> None:
    if engine == "atheris" and not has_atheris():
        pytest.skip("atheris is not installed")
    name = "tests.proof.planted:TARGET"
    found = fuzz.fuzz(name, 4, engine=engine, root=tmp_path, folder="planted")
    assert found.broken == ""
    [line] = found.finds
    assert "IndexError: planted (planted.py:" in line
    [kept] = corpus("planted", root=tmp_path)
    with pytest.raises(IndexError):
        run(planted.TARGET, kept.read_bytes())
    assert kept.name in line
    assert found.executions > 100
    assert (found.branches is not None) is (engine == "atheris")
    said = render(fuzz.table([found], command="make fuzz SECONDS=8", seed=1))
    assert f"| {name} | 0 | {found.executions:,} |" in said


def test_a_process_that_ends_early_is_no_success(tmp_path: Path) -> None:
    ended = fuzz.fuzz("tests.proof.nowhere:TARGET", 1, engine="mutation", root=tmp_path, folder="nowhere")
    assert "ModuleNotFoundError" in ended.broken
    assert "ModuleNotFoundError" in render(fuzz.table([ended], command="x", seed=1))


def test_an_input_that_takes_too_long_is_a_find() -> None:
    def slow(data: bytes) -> None:
        sum(range(2_000_000))

    with pytest.raises(TooSlow):
        run(Target(name="slow", check=slow, seconds=0.0001), b"x")


def test_inputs_have_exactly_their_fields() -> None:
    assert fields(b"a\x1eb\x1ec", 2) == [b"a", b"b\x1ec"]
    assert fields(b"", 3) == [b"", b"", b""]


def test_changed_json_is_json_beside_the_same_other_fields() -> None:
    data = b"push\x1e" + b'{"a":[1,{"b":"c"}],"d":null}'
    seen = {changed_json(data, random.Random(seed), 4096) for seed in range(200)}
    assert len(seen) > 100
    for made in seen:
        head, last = fields(made, 2)
        assert head == b"push"
        msgspec.json.decode(last.replace(b"\\ud800", b""))
    assert changed_json(b"push\x1enot json", random.Random(1), 4096) == b"push\x1enot json"
