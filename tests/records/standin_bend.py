"""A stand-in for `bend` that prints what Bend 2.0.36 is known to print, for the few forms the tests write.

It takes `{True{} : Bool}` for a wrong proof of any law and everything else for a right one. It is no checker: where
a real Bend is found, the same tests run against that one as well.
"""

from __future__ import annotations

import os
import re
import sys
from typing import NoReturn

WRONG = "{True{} : Bool}"
NAME = r"[A-Za-z_][A-Za-z0-9_.]*"


def fail(*lines: str) -> NoReturn:
    sys.stderr.write("\n".join(["SOME PROOFS FAIL", *lines]) + "\n")
    sys.exit(1)


def declared(path: str) -> tuple[str, list[str], list[tuple[str, str]]]:
    with open(path, encoding="utf-8", newline="") as handle:
        text = handle.read()
    return (
        text,
        re.findall(rf"(?m)^law ({NAME})[ \t]*:", text),
        re.findall(r"(?m)^import (\.\S+) as (\w+)", text),
    )


def definitions(text: str) -> list[tuple[str, str]]:
    return re.findall(rf"(?m)^def ({NAME})\([^)]*\):\r?\n[ \t]+(.*)$", text)


def open_laws(path: str, seen: set[str]) -> set[tuple[str, str]]:
    """Laws declared by a file and everything it imports, as (file, law), minus those closed where they stand."""
    path = os.path.normpath(path)
    if path in seen:
        return set()
    seen.add(path)
    if not os.path.exists(path):
        fail("error: cannot find " + path, "Location:")
    text, laws, imports = declared(path)
    own = {name for name, _ in definitions(text)}
    found = {(path, law) for law in laws if law not in own}
    for target, alias in imports:
        inner = os.path.normpath(os.path.join(os.path.dirname(path), target))
        found |= open_laws(inner, seen)
        found -= {(inner, name[len(alias) + 1 :]) for name in own if name.startswith(alias + ".")}
    return found


def check(path: str) -> None:
    text, _, imports = declared(path)
    if "syntax error" in re.sub(r"#.*", "", text):
        fail("expected: a term", "Location:")
    folder = os.path.dirname(path)
    targets = {alias: os.path.normpath(os.path.join(folder, target)) for target, alias in imports}
    beside = os.path.normpath(os.path.join(folder, "LAWS.bend"))
    if os.path.basename(path) == "PROOF.bend" and os.path.exists(beside) and beside not in targets.values():
        fail("PROOF.bend does not import LAWS.bend", "Location:")
    unproven = open_laws(path, set())
    for name, body in definitions(text):
        alias, _, law = name.partition(".")
        if alias in targets and law:
            if law not in declared(targets[alias])[1]:
                fail(
                    f"- expected: a fresh name ({alias} is the alias of an import)",
                    f"- observed: {name}",
                    "Location:",
                )
            if body.strip() == WRONG:
                fail("- expected: the law", f"Location: {name}")
    if re.search(r"(?m)^@unsafe", text):
        print("UNSAFE CODE FOUND")
        sys.exit(1)
    if unproven:
        print("1 TODO found." if len(unproven) == 1 else f"{len(unproven)} TODO(s) found.")
        sys.exit(1)
    print("ALL PROOFS CHECK")
    print("Use --verdict for mathematical validity.")


def main() -> None:
    if sys.argv[1:] == ["version"]:
        print("bend " + os.environ.get("STANDIN_VERSION", "2.0.36"))
    elif sys.argv[2:] == ["--check-only"]:
        if os.environ.get("STANDIN_LOG"):
            with open(os.environ["STANDIN_LOG"], "a", encoding="utf-8") as log:
                log.write(sys.argv[1] + "\n")
        check(sys.argv[1])
    else:
        for line in declared(sys.argv[1])[0].split("\n"):
            if line.startswith("#| "):
                print(line[3:])


main()
