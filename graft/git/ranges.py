"""What a range means: `BASE..HEAD` as a pull request from HEAD into BASE, so three-dot semantics for both spellings.

The common case costs one git process; only a failure asks more, to say which name is wrong and what to do.
"""

from __future__ import annotations

import msgspec

from graft.git.process import Git, GitError

_SMALL = 1 << 16
_EXAMPLE = "write it as BASE..HEAD, for example main..HEAD"


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """Full object names. `base` is the commit BASE names now; `merge_base` is where HEAD left it.

    When BASE is a tree, `base` and `merge_base` are that tree and `base_is_commit` is false.
    """

    base: str
    head: str
    merge_base: str
    base_is_commit: bool = True
    shallow: bool = False


def resolve(git: Git, text: str) -> Range:
    base, head = _split(text)
    status, lines = _rev_parse(git, "--is-shallow-repository", f"{base}^{{commit}}...{head}^{{commit}}")
    shallow = lines[:1] == ["true"]
    names = [line for line in lines[1:] if not line.startswith("^")]
    bases = [line[1:] for line in lines[1:] if line.startswith("^")]
    if status and len(names) == 2 and bases:
        return Range(base=names[1], head=names[0], merge_base=bases[0], shallow=shallow)
    return _diagnose(git, base, head)


def commit(git: Git, revision: str) -> str:
    """The commit a name stands for."""
    _check_name(revision)
    ok, lines = _rev_parse(git, "--verify", "--quiet", f"{revision}^{{commit}}")
    if ok and lines:
        return lines[0]
    ok, _ = _rev_parse(git, "--verify", "--quiet", f"{revision}^{{object}}")
    if ok:
        raise GitError(
            f"{_shown(revision)} is not a commit: name a branch, a tag or a commit", reason="not_a_commit"
        )
    raise GitError(
        f"no commit is called {_shown(revision)} here: check the spelling, or fetch it first",
        reason="unknown_revision",
    )


def _split(text: str) -> tuple[str, str]:
    for dots in ("...", ".."):
        base, found, head = text.partition(dots)
        if found:
            base, head = base or "HEAD", head or "HEAD"
            _check_name(base)
            _check_name(head)
            return base, head
    raise GitError(f"not a range: {_EXAMPLE}", reason="bad_range")


def _check_name(name: str) -> None:
    """Refuse what git would read as an option, as a second range or as a search through messages or files."""
    odd = not name or name.startswith(("-", "^")) or ".." in name or ":" in name or not name.isprintable()
    if odd or any(c.isspace() for c in name) or len(name) > 1000:
        raise GitError(f"not a range of two revisions: {_EXAMPLE}", reason="bad_range")


def _shown(name: str) -> str:
    return f"'{name}'" if len(name) <= 80 else f"'{name[:79]}…'"


def _diagnose(git: Git, base: str, head: str) -> Range:
    """The range when its base is a tree; otherwise the error that fits."""
    head_sha = commit(git, head)
    shallow = _rev_parse(git, "--is-shallow-repository")[1] == ["true"]
    try:
        commit(git, base)
    except GitError as error:
        ok, lines = _rev_parse(git, "--verify", "--quiet", f"{base}^{{tree}}")
        if ok and lines:
            return Range(
                base=lines[0], head=head_sha, merge_base=lines[0], base_is_commit=False, shallow=shallow
            )
        if error.reason == "unknown_revision" and base.endswith(("^", "~", "~1")):
            raise GitError(
                f"{_shown(base)} does not exist: for a first commit use `$(git hash-object -t tree /dev/null)..HEAD`",
                reason="unknown_revision",
            ) from None
        raise
    what_to_do = (
        "this clone is shallow, run `git fetch --unshallow` first"
        if shallow
        else "name a BASE that HEAD was started from"
    )
    raise GitError(f"BASE and HEAD have no common ancestor: {what_to_do}", reason="no_merge_base")


def _rev_parse(git: Git, *args: str) -> tuple[bool, list[str]]:
    try:
        data, whole = git.read("rev-parse", *args, limit=_SMALL)
    except GitError as error:
        if error.reason != "git_failed":
            raise
        return False, []
    return whole, data.decode("ascii", "replace").split()
