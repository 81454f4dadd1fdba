"""A target with a fault that nobody meets by chance, for the test that the fuzzer finds it."""

from __future__ import annotations

from proof.fuzz_input import Target


def check(data: bytes) -> None:
    """Four steps, one inside the other, each of which a byte decides."""
    if data[0:1] == b"g" and len(data) > 5:
        depth = 1
        for at, wanted in enumerate(b"raf", start=1):
            if data[at] != wanted:
                break
            depth += 1
        if depth == 4:
            raise IndexError("planted")


TARGET = Target(name="planted", check=check, words=(b"gra", b"raft"))
