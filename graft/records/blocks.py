"""Cuts LAWS.bend into blocks: what is shared by all laws, and one block a law.

A block starts at a column-zero declaration. Blank, indented and comment lines belong to the block above, except
the run of column-zero comments (and an `@unsafe` line) directly above a declaration, which belongs to it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .scanner import Scan


@dataclass(frozen=True)
class Block:
    """Consecutive lines of LAWS.bend; `law` is the id, or empty for shared code."""

    law: str
    first_line: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Laws:
    """LAWS.bend, read: its blocks in file order and what each says once comments are gone."""

    scan: Scan
    blocks: tuple[Block, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return self.scan.laws

    def state(self, kept: Collection[str]) -> str:
        """The text with only these laws; everything that is no law is shared and kept."""
        return "\n".join(
            ["\n".join(block.lines) for block in self.blocks if not block.law or block.law in kept]
        )

    def source(self, law: str) -> str:
        """The block of one law as written."""
        return "\n".join(["\n".join(block.lines) for block in self.blocks if block.law == law])

    def meaning(self, law: str) -> str:
        """The block of one law (or with `""` all shared code) without comments, blank lines and line-end blanks."""
        kept = []
        masked = self.scan.uncommented.split("\n")
        for block in self.blocks:
            if block.law == law:
                start = block.first_line - 1
                kept += [line.rstrip(" \t\r") for line in masked[start : start + len(block.lines)]]
        return "\n".join([line for line in kept if line])


def split(scan: Scan) -> Laws:
    """The blocks of a LAWS.bend that was not refused."""
    lines = scan.text.split("\n")
    starts: list[tuple[int, str]] = []
    for item in scan.declarations:
        first = item.line - 1
        while first > 0 and (lines[first - 1].startswith("#") or _is_unsafe(lines[first - 1])):
            first -= 1
        starts.append((first, item.name if item.kind == "law" else ""))
    bounds = [(0, ""), *starts] if not starts or starts[0][0] > 0 else starts
    blocks = []
    for index, (first, law) in enumerate(bounds):
        last = bounds[index + 1][0] if index + 1 < len(bounds) else len(lines)
        blocks.append(Block(law, first + 1, tuple(lines[first:last])))
    return Laws(scan, tuple(blocks))


def _is_unsafe(line: str) -> bool:
    return line.startswith("@") and "unsafe" in line
