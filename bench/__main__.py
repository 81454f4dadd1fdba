"""`python -m bench [NAME] [options]`: without a name, the ingress and then webhook to published."""

from __future__ import annotations

import importlib
import sys

BENCHES = {
    "ingress": "accepted deliveries per second, p50 and p99, at 1, 16 and 64 connections",
    "peers": "the receivers a team would otherwise run, side by side with the ingress",
    "published": "webhook to published, with a zero-latency GitHub and model",
    "cluster": "three brokers, two replicas, and the leader of the stream dies under load",
    "capacity": "what few and very many repositories need, from measured costs",
    "control": "graftctl's questions to two replicas that know 10,000 pull requests",
    "many": "memory of idle actors, wake-ups and graftctl with up to 100,000 known changes",
    "review": "graft review over consecutive commits of a repository",
    "policy": "a policy over 3,000 files and 100 globs",
    "records": "graft records check over 200 records",
}


def main(arguments: list[str]) -> int:
    name, *rest = arguments or [""]
    if name in ("-h", "--help") or (name and name not in BENCHES):
        for bench, what in BENCHES.items():
            print(f"{bench:10} {what}")
        return 0 if name in ("-h", "--help") else 2
    for bench in [name] if name else ["ingress", "published"]:
        code = importlib.import_module(f"bench.{bench}").main(rest)
        if code:
            return int(code)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
