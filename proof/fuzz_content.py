"""Fuzz targets for what pull requests and repositories bring: messages, diffs, globs, graft.yaml, comments, answers.

Every check compares with something that does not share the code under test where there is such a thing: a
naive matcher, the other YAML parser, the text that went in.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from typing import Final

import msgspec
import yaml

from graft import diffs, globs, intent, policy, provenance
from graft.changes import ChangedFile, Commit, Person, Snapshot
from graft.github import comment_body
from graft.policy import document
from graft.policy.problems import Problems
from graft.provenance import trailers
from graft.risk import Risk, highest
from graft.testing.model import FakeModel
from proof.fuzz_input import Target, fields, number, text

SECTION_LIMIT: Final = comment_body.SECTION_LIMIT
_KEY = re.compile(r"[A-Za-z0-9-]+\Z")
_HIDDEN: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}


# -------------------------------------------------------------------------------------------------------- trailers


def check_trailers(data: bytes) -> None:
    """Fields: a commit's message, the pull request's description and branch."""
    message, body, branch = (text(part) for part in fields(data, 3))
    block = trailers.read(message)
    assert 0 <= block.start <= block.end <= len(block.lines), "a block outside of the message"
    before_nul = message.split("\0", 1)[0]
    assert "".join(block.lines) in (before_nul, before_nul + "\n"), "the lines are not the message"
    for trailer in block.trailers:
        assert _KEY.match(trailer.key), "a key of another form"
        assert "\n" not in trailer.value and trailer.value == trailer.value.strip(" \t\n\r"), (
            "a value unfolded"
        )
    person = Person(name="x", email="x@example.com", login="x", id=1)
    commit = Commit(sha="a" * 40, message=message, author=person, committer=person)
    found = provenance.resolve([commit], author=person, branch=branch, body=body)
    assert "\n" not in found.explanation and len(found.explanation) < 500, "a long explanation"
    assert len(provenance.render_section(found)) <= SECTION_LIMIT, "a section above its limit"
    one_line = [*found.agents, *found.models, *(fact.session or "" for fact in found.commits)]
    for value in one_line:
        assert len(value) <= 300, "a long value"
        assert not any(unicodedata.category(char) in _HIDDEN for char in value), "a hidden character"


# ----------------------------------------------------------------------------------------------------------- diffs

_STATUSES: Final = {"added", "removed", "modified", "renamed", "copied", "changed"}


def check_diff(data: bytes) -> None:
    """A unified diff."""
    whole = text(data)
    files = diffs.parse_diff(whole)
    assert len(files) <= whole.count("diff --git "), "more files than headers"
    assert sum(len(file.patch or "") for file in files) <= len(whole), "more patch than diff"
    for file in files:
        assert file.path, "a file without a path"
        assert file.status in _STATUSES, file.status
        assert file.additions >= 0 and file.deletions >= 0
        if file.patch is None:
            assert file.additions == file.deletions == 0, "lines without a patch"
            continue
        assert file.patch in whole, "a patch that is not of the diff"
        hunks = diffs.parse_hunks(file.patch)
        signs = [line[:1] for hunk in hunks for line in hunk.lines]
        assert signs.count("+") == file.additions, "additions miscounted"
        assert signs.count("-") == file.deletions, "deletions miscounted"
        rebuilt = sum(len(hunk.lines) + 1 for hunk in hunks)
        assert rebuilt == file.patch.count("\n") + 1, "lines of the patch in no hunk"
    # The floor and the fingerprint take whatever a diff may say.
    snapshot = Snapshot(base_sha="b" * 40, head_sha="a" * 40, files=files, commits=())
    assert intent.assess(snapshot).risk in Risk
    intent.diff_fingerprint(snapshot)


# ----------------------------------------------------------------------------------------------------------- globs


def check_glob(data: bytes) -> None:
    """Fields: a glob, then a path a line."""
    pattern, listed = (text(part) for part in fields(data, 2))
    paths = [path for path in listed.split("\n")[:20] if path]
    try:
        glob = globs.compile_glob(pattern)
    except globs.GlobError as error:
        assert 0 < len(error.reason) < 300, "no reason, or a long one"
    else:
        together = globs.GlobSet([glob])
        for path in paths:
            matched = glob.matches(path)
            assert together.matches(path) is matched, "a set differs from its glob"
            if _is_simple(pattern) and _is_simple(path):
                assert matched is _naive(pattern, path), "a match differs from the naive one"
        assert globs.compile_glob(glob.pattern) == glob
    try:
        several = globs.compile_list(pattern)
    except globs.GlobListError as refused:
        assert refused.problems and all(position > 0 for position, _ in refused.problems)
    else:
        assert len(several) <= globs.MAX_LIST_GLOBS


def _is_simple(given: str) -> bool:
    """Without classes and escapes, in ASCII: what the naive matcher knows. Paths have names between slashes."""
    return (
        given.isascii()
        and not re.search(r"[\[\]\\{}\x00-\x1f\x7f]", given)
        and all(given.removeprefix("/").split("/"))
    )


def _naive(pattern: str, path: str) -> bool:
    rooted = "/" in pattern
    wanted = pattern.lower().removeprefix("/").split("/")
    if path.startswith("/"):
        return _segments(wanted if rooted else ["**", *wanted], ["", *path.lower()[1:].split("/")])
    return _segments(wanted if rooted else ["**", *wanted], path.lower().split("/"))


def _segments(wanted: list[str], names: list[str]) -> bool:
    """Whether the names fit, by a table of what fits up to where: no backtracking, whatever is asked."""
    fits = {0}
    for position, segment in enumerate(wanted):
        if segment == "**":
            if position == len(wanted) - 1:
                return any(at < len(names) for at in fits)
            fits = {end for at in fits for end in range(at, len(names) + 1)}
        else:
            fits = {at + 1 for at in fits if at < len(names) and _name(segment, names[at])}
    return len(names) in fits


def _name(segment: str, name: str) -> bool:
    fits = {0}
    for char in segment:
        if char == "*":
            fits = {end for at in fits for end in range(at, len(name) + 1)}
        else:
            fits = {at + 1 for at in fits if at < len(name) and char in ("?", name[at])}
    return len(name) in fits and (bool(name) or not segment)


# ---------------------------------------------------------------------------------------------------------- policy

_FACTS: Final = policy.Facts(
    files=(
        ChangedFile(path="a/b.py", status="modified", additions=1),
        ChangedFile(path=".x", status="added"),
    ),
    author_kind="agent",
    agents=("claude-code",),
    labels=("bug",),
    risk=Risk.LOGIC,
    base_ref="main",
)
_PLACE = re.compile(r'\$(\.[A-Za-z][A-Za-z0-9_-]{0,39}|\["\?"\]|\[\d{1,7}\])*\Z')


def check_policy(data: bytes) -> None:
    """A graft.yaml."""
    parsed = policy.parse(data)
    assert (parsed.policy is None) is bool(parsed.problems), "neither a policy nor a problem, or both"
    assert len(parsed.problems) <= 51, "an endless list of problems"
    lines = data.count(b"\n") + data.count(b"\r") + text(data).count("\x85") + 1
    for problem in parsed.problems:
        assert 1 <= problem.line <= lines + 1 and problem.column >= 1, "a problem outside of the file"
        assert _PLACE.match(problem.path), "a path that is none"
        assert len(problem.message) < 500 and problem.message.isprintable(), "a message of another form"
    loaded = policy.of_bytes(data, "graft.yaml")
    decision = policy.decide(loaded, _FACTS)
    assert decision.outcome in ("approve", "review", "block", "none")
    assert (decision.verdict is None) is (parsed.policy is None), "a verdict without a policy"
    assert len(policy.render_section(decision)) <= SECTION_LIMIT, "a section above its limit"
    if len(data) <= 512:
        _both_parsers(data)


def _both_parsers(data: bytes) -> None:
    """libyaml and PyYAML's own parser may word an error differently; they must not read differently."""
    found = []
    for loader in (document.LOADER, yaml.SafeLoader):
        problems = Problems()
        root = document.read(data, problems, loader=loader)
        found.append(None if root is None or problems else _plain(root))
    quick, slow = found
    assert quick is None or slow is None or quick == slow, "the two parsers read different things"


def _plain(node: document.Node) -> object:
    if isinstance(node, document.Mapping):
        return {key: _plain(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, document.Sequence):
        return [_plain(item) for item in node.items]
    assert isinstance(node, document.Scalar), "something refused without a problem"
    return node.text, node.plain


# --------------------------------------------------------------------------------------------------------- comment

_FOOTER: Final = "footer"


def check_comment(data: bytes) -> None:
    """Fields: how often the texts are repeated, body that is there, section to write, its text."""
    often, before, name, given = fields(data, 4)
    times = 1 + number(often, 40)
    body = text(before)
    written = text(given) * times
    if not body.startswith(comment_body.MARKER) and len(before) % 2:
        body = f"{comment_body.MARKER}\n{body}"
    found = comment_body.parse(body)
    for section in found.values():
        assert section.block in body and section.text in section.block, "a section that is not of the body"
    sections = {text(name): written} if name else {"intent": written, "policy": None}
    try:
        made = comment_body.compose(body, sections, footer=_FOOTER)
    except ValueError as error:
        assert re.search(r"not a section name|contains a Graft marker", str(error)), "another ValueError"
        return
    assert len(made) <= comment_body.BODY_LIMIT or len(body) > comment_body.BODY_LIMIT, "above GitHub's limit"
    assert comment_body.has_marker(made) and made.endswith(f"<sub>{_FOOTER}</sub>"), "no comment of ours"
    again = comment_body.compose(made, sections, footer=_FOOTER)
    assert again == made, "composing twice changes something"
    after = comment_body.parse(made)
    for kept, section in found.items():
        if kept not in sections and len(body) + len(written) < comment_body.BODY_LIMIT - 500:
            assert kept in after and after[kept].block == section.block, "somebody else's section was changed"
    for wanted, content in sections.items():
        if content is None:
            assert wanted not in after, "a removed section is still there"
    assert len(after) <= len(found) + 1


# --------------------------------------------------------------------------------------------------------- answers

_SNAPSHOT: Final = Snapshot(
    base_sha="b" * 40,
    head_sha="a" * 40,
    files=(
        ChangedFile(
            path="src/pay.py",
            status="modified",
            additions=1,
            deletions=1,
            patch="@@ -1,2 +1,2 @@\n-limit = 1\n+limit = 2\n x = 1",
        ),
    ),
    commits=(),
)
_CLAUSES: Final = (intent.Clause(record="0001-limits", clause="R1", text="The limit is 1."),)
_MODELS: Final = intent.Models(fast="fast", strong="strong")
_loop: asyncio.AbstractEventLoop | None = None


def check_answers(data: bytes) -> None:
    """Fields: the writer's answer, the verifier's, and what they say when asked again."""
    global _loop
    if _loop is None:
        _loop = asyncio.new_event_loop()
    writer, verifier, repaired, verified = (text(part) for part in fields(data, 4))
    model = FakeModel()
    for purpose in ("writer", "fast_writer", "*"):
        model.says(purpose, writer)
    model.says("writer_repair", repaired).says("verifier", verifier).says("verifier_repair", verified)
    inputs = intent.CardInputs(snapshot=_SNAPSHOT, title="t", body="b", clauses=_CLAUSES)
    card = _loop.run_until_complete(intent.write_card(inputs, model, _MODELS))
    floor = intent.assess(_SNAPSHOT).risk
    assert highest(card.risk, floor) is card.risk, "an answer lowered the risk"
    if card.verifier is not intent.VerifierStatus.AGREES:
        assert highest(card.risk, Risk.LOGIC) is card.risk, "unchecked, and below logic"
    assert len(model.requests) <= 6, f"{len(model.requests)} calls for one card"
    section = intent.render_section(card)
    assert len(section) <= SECTION_LIMIT, "a section above its limit"
    stored = msgspec.json.encode(card.stored())
    assert len(stored) <= 64 * 1024, f"a stored card of {len(stored)} bytes"
    assert intent.render_section(intent.Card.from_stored(msgspec.json.decode(stored))) == section, (
        "a stored card shows something else"
    )


# ------------------------------------------------------------------------------------------------------------ words

_SECTION = tuple(
    f"<!-- graft:section:{name}:{edge} -->".encode()
    for name in ("intent", "provenance", "policy", "records", "other")
    for edge in ("start\n", "end\n")
)

TARGETS: Final = (
    Target(
        name="trailers",
        check=check_trailers,
        words=(
            *(b"Graft-Agent: claude-code", b"Graft-Model: ", b"Graft-Task: ", b"Graft-Session: ", b"\n\n"),
            *(b"Signed-off-by: a <a@b.c>\n", b"Co-authored-by: Claude <noreply@anthropic.com>\n", b"\n "),
            *(b"(cherry picked from commit ", b"# ------------------------ >8 ------------------------\n"),
            *(b"Conflicts:\n", b"---\n", b": ", b"fixup! "),
        ),
    ),
    Target(
        name="diffs",
        check=check_diff,
        words=(
            *(
                b"diff --git a/x b/x\n",
                b"--- a/x\n",
                b"+++ b/x\n",
                b"@@ -1 +1 @@\n",
                b"@@ -1,2 +1,3 @@ def f\n",
            ),
            *(b"new file mode 100644\n", b"deleted file mode 120000\n", b"old mode 100644\n", b"index "),
            *(b"rename from x\n", b"rename to y\n", b"copy to y\n", b"Binary files a/x and b/x differ\n"),
            *(
                b"GIT binary patch\n",
                b"\\ No newline at end of file\n",
                b'"a/\\303\\244"',
                b"/dev/null",
                b"160000",
            ),
        ),
    ),
    Target(
        name="globs",
        check=check_glob,
        words=(
            b"**",
            b"**/",
            b"/**",
            b"*",
            b"?",
            b"[a-z]",
            b"[!a]",
            b"\\[",
            b"\xcc\x88",
            b"\xc4\xb0",
            b"a" * 20,
        ),
        longest=1024,
    ),
    Target(
        name="policy",
        check=check_policy,
        words=(
            *(
                b"version: 1\n",
                b"rules:\n",
                b"  - name: a\n",
                b"    when: ",
                b"    then: ",
                b"default: review\n",
            ),
            *(
                b"sensitive_paths: ",
                b"paths: {any: [",
                b"]}",
                b"author: agent",
                b"max_risk: trivial",
                b"{}",
                b"&a ",
                b"*a",
            ),
            *(
                b"<<: ",
                b"!!int ",
                b"|\n  ",
                b">-\n",
                b"? ",
                b"---\n",
                b"%YAML 1.1\n",
                b'"\\x00"',
                b"message: x\n",
            ),
        ),
    ),
    Target(
        name="comment",
        check=check_comment,
        words=(
            *_SECTION,
            *(comment_body.MARKER.encode() + b"\n", b"```\n", b"~~~~\n", b"<details>\n", b"</details>\n"),
            *(b"<!-- graft:", b"\n\n", b"\r\n", b"\xe2\x80\xa8", b"399", b"\x1eintent\x1e", b"\x1e"),
        ),
    ),
    Target(
        name="answers",
        check=check_answers,
        words=(
            *(b'{"goal":"', b'"behavior_changes":[', b'"out_of_scope":[', b'{"path":"src/pay.py","reason":"'),
            *(
                b'"risk":"trivial"',
                b'"risk":"LOGIC"',
                b'"risk_reason":"',
                b'"touches":[{"change":1,"clause":"',
            ),
            *(
                b'0001-limits R1"',
                b'{"claims":[{"id":"c1","verdict":"supported","reason":"',
                b'"missed_changes":[',
            ),
            *(b"```json\n", b"\n```", b'"}', b"]", b"}", b",", b"\x1e", b"\\ud800", b"1e999", b"NaN"),
        ),
    ),
)
