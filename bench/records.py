"""How long `graft records check` takes over 200 approved records, each with a receipt.

python -m bench.records           # prints the best of three and exits with 1 above two seconds
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from graft.records import canonical, check, judging, receipts
from graft.records.files import DiskTree
from graft.records.judges import ScriptedJudge
from graft.records.repository import load

LIMIT_SECONDS = 2.0
RECORDS = 200
LAWS = 12

_RECORD = """# Record {number}

id: {id}
status: approved
context: ./CONTEXT.md

## Intent

Decide number {number}.

## Vocabulary

See CONTEXT.md.

## Rules

{rules}

## Worked examples

None

## Freedoms

None

## Non-goals

None

## Open questions

None

## Approval

approved-by: Example Person
"""


def build(root: Path) -> None:
    """A repository in which every record is approved and judged against the whole model."""
    (root / ".intent/records").mkdir(parents=True)
    (root / ".intent/model").mkdir()
    (root / ".intent/receipts").mkdir()
    (root / "CONTEXT.md").write_text("# Words\n")
    laws = "import Base\n" + "".join(
        [f"\nlaw law_{n}:\n  {{{n}n == {n}n : Nat}}\n" for n in range(1, LAWS + 1)]
    )
    (root / ".intent/model/LAWS.bend").write_text(laws)
    (root / ".intent/model/laws.sha256").write_text(canonical.sha256(laws) + "\n")
    for number in range(RECORDS):
        name = f"{number:04}-decision"
        rules = "\n".join([f"R{n}: Rule {n} of decision {number}." for n in range(1, LAWS + 1)])
        text = _RECORD.format(number=number, id=name, rules=rules)
        (root / f".intent/records/{name}.md").write_text(text)
    intent = load(DiskTree(root))
    judge = ScriptedJudge(
        {f"R{n}": f"law_{n}" for n in range(1, LAWS + 1)}, {f"law_{n}": 1.0 for n in range(1, LAWS + 1)}
    )
    assert intent.laws is not None
    for record in intent.approved:
        fields = judging.produce(record, intent.laws, (), "scripted/bench", judge)
        (root / f".intent/receipts/{record.id}.json").write_bytes(receipts.encode(fields))


def main(argv: Sequence[str] = ()) -> int:
    """Print one line; 1 if it took too long."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        build(root)
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            with contextlib.redirect_stdout(io.StringIO()):
                status = check.main([str(root)])
            best = min(best, time.perf_counter() - start)
            assert status == 0
    print(f"records: check of {RECORDS} records with {LAWS} laws: {best:.2f} s (limit {LIMIT_SECONDS:.0f} s)")
    return 0 if best <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
