"""Every fuzz target, by name."""

from __future__ import annotations

from typing import Final

from proof import fuzz_content, fuzz_edge, fuzz_records
from proof.fuzz_input import Target

TARGETS: Final[dict[str, Target]] = {
    target.name: target for target in (*fuzz_edge.TARGETS, *fuzz_content.TARGETS, *fuzz_records.TARGETS)
}
