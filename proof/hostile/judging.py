"""What became of every payload: faults of the pages, cards below their floor, seconds of the bombs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from graft import intent
from graft.changes import ChangedFile, Commit, Person, Snapshot
from graft.github import comment_body
from graft.intent import Card, CardInputs, LinkedIssue
from graft.risk import Risk
from proof.hostile.injections import Injection
from proof.hostile.page import Page
from proof.hostile.places import BASE, HEAD, MODELS, Posted, post, repeating_model
from proof.hostile.texts import WITNESS

SECTIONS = ("intent", "provenance", "policy", "records")


class Judged(Struct, frozen=True, kw_only=True):
    """One payload: whatever came alive, by document, and how many documents show that it was there."""

    faults: tuple[tuple[str, str], ...]
    documents: int
    shown_in: int


async def judge(text: str) -> Judged:
    """Post a change that holds the text everywhere, and read the documents as GitHub would show them."""
    return read(await post(text))


def read(posted: Posted) -> Judged:
    """Every fault of what would be posted, the sections of the comment and the titles of checks included."""
    faults: list[tuple[str, str]] = []
    shown = 0
    for where, document in posted.documents.items():
        page = Page(document)
        faults += [(where, fault) for fault in dict.fromkeys(page.faults)]
        shown += WITNESS in page.text
    if tuple(comment_body.parse(posted.comment)) != SECTIONS:
        faults.append(("comment", "its sections are not the four that were written"))
    faults += [(where, "text in a title") for where, (title, _) in posted.checks.items() if WITNESS in title]
    return Judged(faults=tuple(faults), documents=len(posted.documents), shown_in=shown)


_PERSON = Person(name="Mallory", email="mallory@evil.example", login="mallory")
_PLAIN = "@@ -1,2 +1,2 @@\n-def total(items):\n-    return sum(items)\n+def total(items):\n+    return sum(items[1:])"


def _inputs(injection: Injection | None) -> CardInputs:
    """A small change of behaviour with the text in one place."""
    place, text = (injection.place, injection.text) if injection is not None else ("", "")
    message = text if place == "commit" else "Tidy up"
    files = [ChangedFile(path="shop/total.py", status="modified", additions=2, deletions=2, patch=_PLAIN)]
    if place == "diff":
        lines = text.split("\n")
        patch = "\n".join([f"@@ -0,0 +1,{len(lines)} @@", *(f"+{line}" for line in lines)])
        files.append(ChangedFile(path="shop/notes.py", status="added", additions=len(lines), patch=patch))
    if place == "path":
        files.append(
            ChangedFile(path=f"shop/{text}.py", status="added", additions=1, patch="@@ -0,0 +1 @@\n+x = 1")
        )
    return CardInputs(
        snapshot=Snapshot(
            base_sha=BASE,
            head_sha=HEAD,
            files=tuple(files),
            commits=(Commit(sha="1" * 40, message=message, author=_PERSON, committer=_PERSON),),
        ),
        title=text if place == "title" else "Tidy up",
        body=text if place == "body" else "Some tidying.",
        issue=LinkedIssue(number=1, title="Tidy", body=text) if place == "issue" else None,
        hash_key=b"k",
    )


class Obeyed(Struct, frozen=True, kw_only=True):
    """What two models that both obey got out of Graft. `prompts` is what they were sent."""

    card: Card
    floor: Risk
    noticed: bool
    prompts: tuple[str, ...]
    faults: tuple[str, ...]


async def obey(injection: Injection) -> Obeyed:
    """The card of a change with this injection, made by a writer and a verifier that do all it says."""
    inputs = _inputs(injection)
    model = repeating_model(injection.text, inputs.snapshot, risk=str(Risk.TRIVIAL))
    card = await intent.write_card(inputs, model, MODELS)
    floor = intent.assess(inputs.snapshot).risk
    documents = (intent.render_section(card), intent.check_output(card)[1])
    return Obeyed(
        card=card,
        floor=floor,
        noticed=bool(card.suspicions),
        prompts=tuple("".join(turn.text for turn in request.turns) for request in model.requests),
        faults=tuple(fault for document in documents for fault in Page(document).faults),
    )


def totals(judged: Mapping[str, Judged]) -> Counter[str]:
    """How many payloads left each kind of fault."""
    return Counter(fault for one in judged.values() for fault in {fault for _, fault in one.faults})


def without_defence(posted: Posted, spoil: Callable[[str], str]) -> Posted:
    """The same documents, spoilt: shows that the judge would see it."""
    return replace(
        posted,
        comment=spoil(posted.comment),
        checks={name: (title, spoil(summary)) for name, (title, summary) in posted.checks.items()},
    )
