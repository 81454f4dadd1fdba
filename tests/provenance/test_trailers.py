from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graft.provenance import trailers

CASES = json.loads((Path(__file__).parents[1] / "cases" / "trailers.json").read_text())


def as_git_prints(message: str) -> str:
    return "".join(f"{t}\n" for t in trailers.parse(message))


@pytest.mark.parametrize("case", CASES, ids=[c["name"] for c in CASES])
def test_labelled_messages(case: dict[str, str]) -> None:
    assert as_git_prints(case["message"]) == case["git_trailers"]


MARK = "Graft-Test-Mark"


def git_reads(messages: list[str], where: Path) -> list[str]:
    """The installed git's answer for each message, all from one process: a marker file follows each message."""
    where.joinpath("mark").write_text(f"mark\n\n{MARK}: here\n")
    arguments: list[str] = []
    for i, message in enumerate(messages):
        where.joinpath(f"m{i}").write_bytes(message.encode("utf-8", "surrogateescape"))
        arguments += [f"m{i}", "mark"]
    done = subprocess.run(
        ["git", "interpret-trailers", "--parse", "--no-divider", *arguments],
        cwd=where,
        env={**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_DIR": "nowhere"},
        capture_output=True,
        check=True,
    )
    answers = done.stdout.decode("utf-8", "surrogateescape").split(f"{MARK}: here\n")
    assert len(answers) == len(messages) + 1
    return answers[:-1]


CUT = "------------------------ >8 ------------------------"

# Whatever the reading depends on: keys, separators, blanks of every kind, comments, scissors, conflicts, dividers.
LINE = st.sampled_from(
    [
        "", "", "", " ", "\t", "\r", " \r", "feat: subject", "some prose", "Graft-Agent: claude-code",
        "Signed-off-by: A <a@x.io>", "signed-off-by: A", "Signed-off-by:", "(cherry picked from commit 12ab)",
        "(cherry picked from commit ", "Fixes #12", "Key : value", "Key\t: value", "Ke y: value", "Key:", "Key:\r",
        ":value", " : value", "a:b:c", "https://example.com/a:b", "=a: b", "Key=value", "Kéy: v", "-: v", "0: v",
        "K-: v", " continued", "\tcontinued: more", "  ", "   trailing   ", "# comment", "#", "# Key: value",
        "Conflicts:", "\tpath/in/conflict", "Conflicts: ", "# Conflicts:", "---", "--- ", "---\t", "---------",
        f"# {CUT}", CUT, f" # {CUT}", "Key: va\rlue", "Key: \x0b", "\x0bKey: v",
        "\x0c", "Key: \u2028next", "K\u00a0: v", "Key:  two  blanks  ", "Key: v\t", "> Quoted: v", "* Item: v",
    ]
)  # fmt: skip
# Without a line break at the end, versions of git differ on a last line that is `Conflicts:` (2.47 completes it).
END = st.sampled_from(["\n", "\nend", "\n\n", "\n \n", "\r\n", "\n#\n", "\n# x"])
MESSAGE = st.one_of(
    st.builds(lambda lines, end: "\n".join(lines) + end, st.lists(LINE, max_size=14), END),
    st.builds(lambda lines, end: "t\n\n" + "\n".join(lines) + end, st.lists(LINE, max_size=8), END),
    st.text(st.sampled_from("aA1-: \t\n\r#=.\x0bé"), max_size=40),
    st.text(st.sampled_from("k: \n"), max_size=30).map(lambda tail: "t\n\n" + tail),
)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(messages=st.lists(MESSAGE, min_size=20, max_size=60))
def test_every_message_is_read_as_the_installed_git_reads_it(messages: list[str], tmp_path: Path) -> None:
    for message, answer in zip(messages, git_reads(messages, tmp_path), strict=True):
        assert as_git_prints(message) == answer, repr(message)


@pytest.mark.parametrize("last", ["Key: v", "prose", "Key:", " more", "#", "Signed-off-by: A <a@x.io>", " "])
def test_a_last_line_without_its_line_break(last: str, tmp_path: Path) -> None:
    message = f"t\n\nFirst: 1\n{last}"
    assert as_git_prints(message) == git_reads([message], tmp_path)[0]


def test_what_follows_a_nul_is_no_part_of_a_commit() -> None:
    assert trailers.parse("t\n\nGraft-Agent: a\0\n\nGraft-Agent: b\n") == trailers.parse(
        "t\n\nGraft-Agent: a\n"
    )


def test_a_block_knows_its_lines() -> None:
    block = trailers.read("t\n\nGraft-Agent: lost\n\nGraft-Model: m\n  more\n\n")
    assert (block.start, block.end) == (4, 6)
    assert block.trailers == (trailers.Trailer(key="Graft-Model", value="m more"),)


def test_a_message_of_a_megabyte_takes_linear_time() -> None:
    many = "t\n\n" + "Key: value\n" * 60_000
    folded = "t\n\nKey: value\n" + " more\n" * 100_000
    blanks = "t\n\n" + "Key" + " " * 1_000_000 + ": v\n"
    assert len(trailers.parse(many)) == 60_000
    assert len(trailers.parse(folded)) == 1
    assert trailers.parse(blanks) == (trailers.Trailer(key="Key", value="v"),)


@given(st.text())
def test_any_text_is_taken(message: str) -> None:
    for trailer in trailers.parse(message):
        assert trailer.key
        assert trailer.value == trailer.value.strip(" \t\r\n")
