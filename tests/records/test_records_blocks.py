"""Blocks of LAWS.bend: what belongs to which law, and what a change of a comment changes."""

from __future__ import annotations

from graft.records import blocks, scanner
from graft.records.blocks import Laws

TEXT = """# banner of the file

import Base

# doc of helper
def helper(x: Nat) -> Nat:
  x

# a comment that a blank line sets apart

# doc of a
# two lines
law a:
  {helper(1n) == 1n : Nat}  # why

# banner of b, set apart

law b:
  {2n == 2n : Nat}
@unsafe
def tail(x: Nat) -> Nat:
  x
"""


def split(text: str) -> Laws:
    found = scanner.scan(text, laws=True)
    assert not found.refusals
    return blocks.split(found)


def test_all_blocks_together_are_the_file() -> None:
    laws = split(TEXT)
    assert laws.state(laws.ids) == TEXT
    assert "\n".join("\n".join(block.lines) for block in laws.blocks) == TEXT
    assert [block.first_line for block in laws.blocks] == [1, 3, 5, 11, 18, 20]


def test_comments_directly_above_belong_to_the_declaration_and_others_to_the_block_above() -> None:
    laws = split(TEXT)
    assert laws.source("a").startswith("# doc of a\n# two lines\nlaw a:")
    assert laws.source("a").endswith("# banner of b, set apart\n")
    assert laws.source("b") == "law b:\n  {2n == 2n : Nat}"
    assert laws.blocks[-1].lines[0] == "@unsafe"


def test_a_state_keeps_shared_code_and_the_chosen_laws() -> None:
    state = split(TEXT).state(["b"])
    assert "law a:" not in state
    assert "law b:" in state
    assert "def helper" in state
    assert "def tail" in state
    assert "# banner of the file" in state


def test_meaning_ignores_comments_and_blank_lines_only() -> None:
    laws = split(TEXT)
    same = split(TEXT.replace("# why", "# because").replace("# doc of helper", "# other doc\n# more"))
    assert same.meaning("") == laws.meaning("")
    assert same.meaning("a") == laws.meaning("a") == "law a:\n  {helper(1n) == 1n : Nat}"
    assert split(TEXT.replace("helper(1n)", "helper(2n)")).meaning("a") != laws.meaning("a")
    assert split(TEXT.replace("  x\n\n", "  1n\n\n")).meaning("") != laws.meaning("")


def test_a_hash_in_a_literal_is_no_comment() -> None:
    one = split('law a:\n  {f("# x") == 1n : Nat}\n')
    two = split('law a:\n  {f("# y") == 1n : Nat}\n')
    assert one.meaning("a") != two.meaning("a")


def test_crlf_lines_are_cut_and_joined_as_they_are() -> None:
    text = TEXT.replace("\n", "\r\n")
    laws = split(text)
    assert laws.state(laws.ids) == text
    assert laws.source("b") == "law b:\r\n  {2n == 2n : Nat}\r"


def test_a_file_without_declarations_is_one_shared_block() -> None:
    laws = split("# nothing\n")
    assert laws.ids == ()
    assert laws.state([]) == "# nothing\n"
