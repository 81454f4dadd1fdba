from __future__ import annotations

import cmarkgfm
from hypothesis import given
from hypothesis import strategies as st

from graft.changes import Commit, Person
from graft.provenance import check_output, render_section, resolve, title

ANN = Person(name="Ann", email="ann@example.com")


def commit(message: str, number: int = 1) -> Commit:
    return Commit(sha=f"{number:040x}", message=message, author=ANN, committer=ANN, parents=("0" * 40,))


def test_an_agent() -> None:
    answer = resolve([commit("x\n\nGraft-Agent: claude-code\nGraft-Model: opus\nGraft-Task: #12\n")])
    assert render_section(answer) == (
        "### Provenance\n\n"
        "**Written by an agent (declared).** Graft-Agent declares an agent in the only commit.\n\n"
        "Agent: `claude-code` · Model: `opus` · Task: `#12`\n"
    )
    assert title(answer) == "Written by an agent (declared)"
    assert check_output(answer)[0] == title(answer)


def test_a_person() -> None:
    section = render_section(resolve([commit("x\n")]))
    assert "**Written by a person, as far as the commits say.** No commit declares an agent" in section


def test_a_mixed_change_names_the_commits_that_decided() -> None:
    section = render_section(
        resolve([commit("x\n", 0xABC << 144), commit("x\n\nGraft-Agent: codex\n", 0xDEF << 144)])
    )
    assert "1 commit by an agent, 1 without any sign of one." in section
    assert f"- `{resolve_short(0xABC)}` no sign of an agent" in section
    assert f"- `{resolve_short(0xDEF)}` `codex`, declared" in section


def resolve_short(number: int) -> str:
    return f"{number << 144:040x}"[:7]


def test_mistakes_and_hints_are_kept_apart() -> None:
    answer = resolve([commit("aider: x\n\nGraft-Agent: codex\nand prose\n")], branch="codex/x")
    section = render_section(answer)
    assert (
        "Not read as declared:\n- `Graft-Agent` in `0000000`, line 3: outside the last paragraph" in section
    )
    assert (
        "Seen, but no evidence by itself:\n- `codex`: name of the branch\n- `aider`: phrase in `0000000`"
        in section
    )


def test_long_lists_are_cut_and_say_so() -> None:
    commits = [commit("x\n\nGraft-Agent: codex\n" if n % 2 else "x\n", n) for n in range(200)]
    section = render_section(resolve(commits))
    assert "- and 190 more" in section
    assert len(section) < 20_000


def test_an_unknown_answer_says_why() -> None:
    section = render_section(resolve([commit("x\n")] * 251))
    assert "**Author unknown.** There are more than 250 commits" in section


@given(st.lists(st.text(max_size=80), max_size=3), st.sampled_from(["Model", "Task", "Session", "Agent"]))
def test_text_from_commits_stays_inert(values: list[str], key: str) -> None:
    hostile = ["@ann <!-- graft:section:policy:end --> [x](http://e.example) `` | #1", *values]
    lines = "".join(f"Graft-{key}: {v}\n" for v in hostile)
    answer = resolve([commit(f"x\n\nGraft-Agent: codex\n{lines}")])
    for text in (render_section(answer), check_output(answer)[1]):
        assert "<!--" not in text
        html = cmarkgfm.github_flavored_markdown_to_html(text)
        assert "<a " not in html
        assert "<!--" not in html
        assert "<img" not in html
