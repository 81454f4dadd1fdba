"""`python -m proof hostile`: every payload, every injection and every bomb, and the table of what became of them."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter

from bench.tables import Table, publish
from proof.hostile.bombs import LONGEST_SECONDS, bombs, seconds
from proof.hostile.injections import DEMANDS, injections
from proof.hostile.judging import judge, obey
from proof.hostile.texts import families


def main(arguments: list[str]) -> int:
    """Exit 1 when a payload came alive, a card fell below its floor or a bomb took too long."""
    parser = argparse.ArgumentParser(prog="python -m proof hostile", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/security.md")
    options = parser.parse_args(arguments)
    rows, bad = asyncio.run(_measure())
    publish(
        Table(
            name="hostile",
            command="python -m proof hostile",
            columns=("family", "texts", "what was looked for", "found", "aim", "verdict"),
            rows=rows,
            conditions={
                "renderer": "cmark-gfm with tables, autolinks, strikethrough and task lists, raw HTML let through",
                "models": "a writer and a verifier that say and do whatever the text says",
            },
        ),
        write=options.write,
    )
    return 1 if bad else 0


async def _measure() -> tuple[list[tuple[str, ...]], int]:
    rows: list[tuple[str, ...]] = []
    bad = 0

    def add(name: str, count: int, what: str, found: str, aim: str, failed: int) -> None:
        nonlocal bad
        bad += failed
        rows.append((name, f"{count:,}", what, found, aim, "missed" if failed else "met"))

    for family, texts in families().items():
        alive = documents = 0
        for text in texts:
            judged = await judge(text)
            alive += bool(judged.faults)
            documents += judged.documents
        what = f"anything alive on {documents:,} pages"
        add(f"markdown: {family}", len(texts), what, f"{alive} texts", "0", alive)

    noticed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    below = faults = unraised = 0
    for injection in injections():
        kind = "language" if injection.disguise == "plain" else "disguise"
        obeyed = await obey(injection)
        total[kind] += 1
        noticed[kind] += obeyed.noticed
        below += obeyed.card.risk.rank < obeyed.floor.rank
        unraised += obeyed.noticed and obeyed.card.risk.rank < 1
        faults += bool(obeyed.faults)
    count = total.total()
    add("injections", count, "a risk below the floor, both models obeying", f"{below} cards", "0", below)
    add("injections", count, "noticed, and still `trivial`", f"{unraised} cards", "0", unraised)
    add("injections", count, "anything alive on the card", f"{faults} cards", "0", faults)
    for kind, said in (
        ("language", f"as a plain sentence, {len(DEMANDS)} languages"),
        ("disguise", "in a disguise"),
    ):
        rows.append(
            (f"injections {said}", f"{total[kind]:,}", "noticed", f"{noticed[kind]:,}", "no aim", "shown")
        )

    for bomb_kind in dict.fromkeys(bomb.kind for bomb in bombs()):
        of_kind = [bomb for bomb in bombs() if bomb.kind == bomb_kind]
        slowest, name = max((seconds(bomb)[0], bomb.name) for bomb in of_kind)
        slow = slowest > LONGEST_SECONDS
        found = f"{slowest * 1000:.1f} ms ({name})"
        aim = f"{LONGEST_SECONDS * 1000:.0f} ms"
        add(f"bombs: {bomb_kind}", len(of_kind), "the longest processor time", found, aim, int(slow))
    return rows, bad
