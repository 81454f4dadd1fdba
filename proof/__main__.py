"""`python -m proof NAME [options]`: runs one of the programs that try to break Graft."""

from __future__ import annotations

import importlib
import sys

PROOFS = {
    "chaos": "seeded faults against real servers and daemons; every accepted delivery has its outcome",
    "interleavings": "orders of events around one pull request, drawn by a seeded scheduler: what must hold",
    "soak": "steady load; memory, descriptors, tasks, connections and actors level off",
    "canaries": "words in every untrusted field and every secret, and a search everywhere else",
    "flood": "a thousand senders that mean harm, against `graft ingress`: memory, and good deliveries answered",
    "hostile": "markdown, injections and bombs in every place that takes text from outside",
    "fuzz": "inputs that lead into every parser of outside bytes; coverage-guided where atheris is installed",
    "fairness": "what one installation in trouble does to the time of the others",
    "upgrade": "the first release's rows and triggers taken over; replicas replaced under load",
    "restore": "a database from an hour ago and an empty stream: every pull request right again",
}


def main(arguments: list[str]) -> int:
    name, *rest = arguments or [""]
    if name not in PROOFS:
        for proof, what in PROOFS.items():
            print(f"{proof:14} {what}")
        return 0 if name in ("-h", "--help") else 2
    return int(importlib.import_module(f"proof.{name}").main(rest))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
