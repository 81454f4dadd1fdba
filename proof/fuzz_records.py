"""Fuzz targets for `.intent/`: records, LAWS.bend, receipts and the manifest, as a pull request may bring them."""

from __future__ import annotations

import re
from typing import Final

from graft.records import blocks, canonical, manifest, modules, receipts, record, scanner
from proof.fuzz_input import Target, fields, number, text

_CODE = re.compile(r"[a-z]+(-[a-z]+)*\Z")
_KEYWORD = re.compile(r"^(?:def|type|import|law)(?![A-Za-z0-9_])", re.MULTILINE)


# ---------------------------------------------------------------------------------------------------------- records


def check_record(data: bytes) -> None:
    """A record's file."""
    path = "records/0001-limits.md"
    found = record.parse(path, data)
    assert found.id == "0001-limits" and found.text == text(data)
    lines = data.count(b"\n") + 1
    for problem in found.problems:
        assert _CODE.match(problem.code), "a code of another form"
        assert problem.line is None or 1 <= problem.line <= lines, "a problem outside of the file"
        assert len(problem.message) < 300, "a long message"
    if not found.problems:
        assert found.status in record.STATUSES
        assert set(record.SECTIONS) <= set(found.sections)
        assert found.clause_ids == tuple(f"R{at}" for at in range(1, len(found.clauses) + 1)), (
            "clauses miscounted"
        )
    if found.approved and not found.problems:
        assert found.clauses and not record.is_placeholder(found.approved_by), (
            "approved by nobody, or nothing"
        )
    if found.has_modules:
        resolved = modules.resolve(found, ("a", "b.c"))
        owned = [clause for module in resolved.modules for clause in module.clauses]
        if not resolved.problems and not found.problems:
            assert sorted(owned) == sorted(found.clause_ids), "a clause is judged twice, or never"
        for module in resolved.modules:
            modules.state(found, module)


# ------------------------------------------------------------------------------------------------------------- laws


def check_laws(data: bytes) -> None:
    """Fields: LAWS.bend or not, the text of a Bend file."""
    kind, source = fields(data, 2)
    whole = text(source)
    scan = scanner.scan(whole, laws=number(kind, 2) == 1)
    assert len(scan.code) == len(scan.uncommented) == len(whole), "a view of another length"
    breaks = [at for at, char in enumerate(whole) if char == "\n"]
    for view in (scan.code, scan.uncommented):
        assert [at for at, char in enumerate(view) if char == "\n"] == breaks, "a view with other lines"
        assert all(shown in (char, " ") for shown, char in zip(view, whole, strict=True)), (
            "a view made up text"
        )
    last = whole.count("\n") + 1
    declared = {item.line for item in scan.declarations}
    refused = {item.line for item in scan.refusals}
    assert all(1 <= line <= last for line in declared | refused), "a line outside"
    # Its promise: a declaration that Bend would see is never hidden.
    if not refused:
        for found in _KEYWORD.finditer(scan.code):
            assert scan.code.count("\n", 0, found.start()) + 1 in declared, "a declaration is hidden"
        laws = blocks.split(scan)
        assert "\n".join("\n".join(block.lines) for block in laws.blocks) == whole, "blocks lose lines"
        assert all(laws.source(law) for law in laws.ids), "a law without a block"
    scanner.forbidden(scan)


# --------------------------------------------------------------------------------------------------------- receipts


def check_receipt(data: bytes) -> None:
    """A receipt and a manifest: JSON that has one meaning, or a refusal that says where."""
    try:
        value = canonical.loads(text(data))
    except canonical.JsonError as error:
        assert len(str(error)) < 200, "a long error"
    else:
        printed = canonical.dumps(value)
        assert canonical.same(canonical.loads(printed), value), "a value differs after being printed"
    try:
        found = receipts.parse(data)
    except (canonical.JsonError, receipts.ShapeError) as error:
        assert str(error), "a refusal without a reason"
    else:
        assert found.schema in (1, 2)
        assert receipts.integrity(found.value)
    read = manifest.parse(data, ("a", "b.c"))
    assert all(_CODE.match(problem.code) for problem in read.problems), "a code of another form"


_RECORD = (
    *(b"id: 0001-limits\n", b"status: approved\n", b"status: draft\n", b"context: CONTEXT.md\n"),
    *(b"## %s\n" % heading.encode() for heading in (*record.SECTIONS, record.MODULES)),
    *(b"R1: text\n", b"R2: ", b"approved-by: Ada\n", b"- core: R1-R2; laws: *\n", b"\xe2\x80\xa8", b"\r"),
)
TARGETS: Final = (
    Target(name="record", check=check_record, words=_RECORD),
    Target(
        name="laws",
        check=check_laws,
        words=(
            *(
                b"law a:\n",
                b"def f(x)\n",
                b"def f?(",
                b"type T\n",
                b"import ./a.bend as A\n",
                b"# ",
                b"@unsafe\n",
            ),
            *(b"?TODO", b'"', b"'a'", b"'\\u{41}'", b"0x1F", b"1.5e3", b"  ", b"\r\n", b"1\x1e", b"\\"),
        ),
    ),
    Target(
        name="receipt",
        check=check_receipt,
        json=True,
        words=(
            *(b'"%s":' % name.encode() for name in receipts.COMMON),
            *(b'"answers":', b'"questions":', b'"coverage":', b'"fidelity":', b'{"type":"noul","noul":1}'),
            *(b'{"type":"choice","choice":"none","confidence":1,"probabilities":{"none":1}}', b'"modules":'),
            *(
                b'"checks":',
                b'"name":',
                b'"argv":',
                b'"laws":',
                b"{",
                b"}",
                b"[",
                b"]",
                b",",
                b"1e400",
                b"-0",
            ),
        ),
    ),
)
