"""Make small git repositories for the demo and the tests, the same SHAs every time.

Commits go in through `git fast-import`: no working tree, no hooks, none of the user's settings.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

EPOCH = 1_767_225_600  # 2026-01-01T00:00:00Z; each commit is a minute later
DEVELOPER = "Mona Lisa <mona@example.com>"


@dataclass(frozen=True, kw_only=True)
class Special:
    """A file other than a plain one: `100755` executable, `120000` link, `160000` submodule (a commit's SHA)."""

    mode: str
    content: bytes | str


@dataclass(kw_only=True)
class RepositoryBuilder:
    """A bare repository that grows commit by commit."""

    path: Path
    _minutes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._git("init", "--quiet", "--bare", "--initial-branch=main", str(self.path))

    def commit(
        self,
        branch: str,
        files: Mapping[str, str | bytes | Special | None],
        *,
        message: str = "Change something",
        parent: str | None = None,
        merge: str | None = None,
        author: str = DEVELOPER,
        committer: str | None = None,
    ) -> str:
        """Commit on a branch and return the SHA; `None` deletes a file.

        A branch that is new starts at `parent` (a SHA), or without a history. Giving `parent` for a branch
        that exists rewrites it.
        """
        start = parent or self.tip(branch)
        when = f"{EPOCH + 60 * self._minutes} +0000"
        self._minutes += 1
        lines = [
            f"commit refs/heads/{branch}\n".encode(),
            f"author {author} {when}\n".encode(),
            f"committer {committer or author} {when}\n".encode(),
            _data(message.encode()),
        ]
        if start is not None:
            lines.append(f"from {start}\n".encode())
        if merge is not None:
            lines.append(f"merge {merge}\n".encode())
        lines += [_change(path, content) for path, content in files.items()]
        self._git("-C", str(self.path), "fast-import", "--quiet", "--force", stdin=b"".join(lines))
        made = self.tip(branch)
        if made is None:
            raise RuntimeError("git fast-import made no commit")
        return made

    def tip(self, branch: str) -> str | None:
        """Where a branch is now."""
        found = self._git(
            "-C", str(self.path), "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}"
        )
        return found.decode().strip() or None

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        settings = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
        done = subprocess.run(
            ["git", *arguments],
            input=stdin,
            stdout=subprocess.PIPE,
            check=True,
            env={"PATH": os.environ.get("PATH", os.defpath), **settings},
        )
        return done.stdout


@dataclass(frozen=True, kw_only=True)
class DemoRepository:
    """The demo's repository: `main`, and a `feature` branch with two commits by an agent and one by a person."""

    path: Path
    base: str
    head: str
    base_branch: str = "main"
    head_branch: str = "feature"
    title: str = "Refuse expired coupons at checkout"
    body: str = (
        "Expired coupons were still accepted. Checkout now looks at the expiry date and says why it refused.\n\n"
        "Fixes #1\n"
    )


def build_demo_repository(path: Path) -> DemoRepository:
    """Make the demo's repository at a path that does not exist yet."""
    builder = RepositoryBuilder(path=path)
    builder.commit("main", _BASE_FILES, message="Start the shop")
    base = builder.commit("main", {"docs/coupons.md": _COUPONS_DOC}, message="Write down how coupons work")
    agent = "Graft-Agent: claude-code\nGraft-Model: claude-opus-4-6\nGraft-Task: SHOP-17\n"
    builder.commit(
        "feature",
        {"shop/coupons.py": _COUPONS_AFTER, "shop/auth.py": _AUTH_AFTER},
        parent=base,
        message="Refuse coupons after their last day\n\n"
        f"{agent}Co-Authored-By: Claude <noreply@anthropic.com>\n",
    )
    builder.commit(
        "feature",
        {"tests/test_coupons.py": _TESTS_AFTER},
        message=f"Test the last day and the day after\n\n{agent}",
    )
    head = builder.commit(
        "feature", {"docs/coupons.md": _COUPONS_DOC_AFTER}, message="Mention the expiry date"
    )
    return DemoRepository(path=path, base=base, head=head)


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def _change(path: str, content: str | bytes | Special | None) -> bytes:
    name = b'"' + path.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
    if content is None:
        return b"D " + name + b"\n"
    mode = content.mode if isinstance(content, Special) else "100644"
    raw = content.content if isinstance(content, Special) else content
    data = raw.encode() if isinstance(raw, str) else raw
    if mode == "160000":
        return b"M 160000 " + data + b" " + name + b"\n"
    return f"M {mode} inline ".encode() + name + b"\n" + _data(data)


_COUPONS = """\
\"\"\"Coupons take something off a basket.\"\"\"

from dataclasses import dataclass


@dataclass(frozen=True)
class Coupon:
    code: str
    percent: int


def apply(coupon: Coupon, total: int) -> int:
    return total - total * coupon.percent // 100
"""
_COUPONS_AFTER = """\
\"\"\"Coupons take something off a basket, until their last day.\"\"\"

from dataclasses import dataclass
from datetime import date


class CouponExpired(Exception):
    \"\"\"The coupon's last day is over.\"\"\"


@dataclass(frozen=True)
class Coupon:
    code: str
    percent: int
    last_day: date | None = None


def apply(coupon: Coupon, total: int, today: date) -> int:
    if coupon.last_day is not None and today > coupon.last_day:
        raise CouponExpired(coupon.code)
    return total - total * coupon.percent // 100
"""
_AUTH = """\
\"\"\"Who may use a coupon.\"\"\"

STAFF = frozenset({"mona"})


def may_use_staff_coupon(login: str) -> bool:
    return login in STAFF
"""
_AUTH_AFTER = _AUTH.replace("return login in STAFF", "return login.lower() in STAFF")
_TESTS = """\
from shop.coupons import Coupon, apply


def test_takes_a_tenth_off():
    assert apply(Coupon("TEN", 10), 200) == 180
"""
_TESTS_AFTER = """\
from datetime import date

import pytest

from shop.coupons import Coupon, CouponExpired, apply

LAST = date(2026, 3, 31)


def test_takes_a_tenth_off_on_the_last_day():
    assert apply(Coupon("TEN", 10, LAST), 200, LAST) == 180


def test_refuses_the_day_after():
    with pytest.raises(CouponExpired):
        apply(Coupon("TEN", 10, LAST), 200, date(2026, 4, 1))
"""
_COUPONS_DOC = "# Coupons\n\nA coupon takes a share off the whole basket.\n"
_COUPONS_DOC_AFTER = _COUPONS_DOC + "After its last day it is refused.\n"
_BASE_FILES = {
    "README.md": "# Shop\n\nA small shop for a demonstration.\n",
    "shop/__init__.py": "",
    "shop/coupons.py": _COUPONS,
    "shop/auth.py": _AUTH,
    "shop/basket.py": "def total(prices: list[int]) -> int:\n    return sum(prices)\n",
    "tests/test_coupons.py": _TESTS,
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1.0"\n',
}
