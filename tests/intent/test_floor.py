from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graft.changes import ChangedFile, Snapshot
from graft.globs import compile_glob
from graft.intent.floor import PATH_ROWS, Floor, assess, file_risk
from graft.risk import Risk


def changed(path: str, **fields: object) -> ChangedFile:
    given = {"status": "modified", "additions": 1, "deletions": 1, "patch": "@@ -1 +1 @@\n-a\n+b"} | fields
    return ChangedFile(path=path, **given)  # type: ignore[arg-type]


def snapshot(*files: ChangedFile, incomplete: tuple[str, ...] = ()) -> Snapshot:
    return Snapshot(base_sha="b", head_sha="h", files=files, commits=(), incomplete=incomplete)


def floor_of(*files: ChangedFile, **options: object) -> Floor:
    return assess(snapshot(*files), **options)  # type: ignore[arg-type]


def codes(floor: Floor) -> list[str]:
    return [reason.code for reason in floor.reasons]


SENSITIVE = {
    "ci_config": """.github/workflows/ci.yml .github/workflows/deep/x.yml CODEOWNERS .github/CODEOWNERS
        docs/CODEOWNERS .gitlab-ci.yml Jenkinsfile .circleci/config.yml .pre-commit-config.yaml .gitattributes
        action.yml AGENTS.md .claude/settings.json""",
    "graft_policy": "graft.yaml graft.yml .github/graft.yaml .github/graft.yml GRAFT.YAML",
    "dependency": """package.json web/package-lock.json yarn.lock pnpm-lock.yaml pyproject.toml requirements.txt
        requirements-dev.txt requirements/base.txt go.mod go.sum Cargo.toml Cargo.lock pom.xml build.gradle
        build.gradle.kts Gemfile Gemfile.lock lib.gemspec composer.json App.csproj Directory.Packages.props
        Package.swift Podfile.lock pubspec.yaml mix.exs rebar.config stack.yaml conanfile.txt renv.lock cpanfile
        uv.lock poetry.lock flake.lock deno.lock bun.lockb build.sbt project.clj gradle/libs.versions.toml""",
    "infrastructure": """main.tf prod.tfvars Dockerfile Dockerfile.prod api.dockerfile docker-compose.override.yml
        k8s/app.yaml ops/k8s/app.yaml deploy/x.sh infra/main.py charts/x/values.yaml Procfile serverless.yml
        kustomization.yaml nginx.conf Pulumi.prod.yaml main.bicep""",
    "security": """src/auth/login.py lib/user_auth.go src/AuthService.java oauth2.ts app/crypto/aes.py
        config/secrets.yml .env .env.production tls.key server.pem src/jwt.rs permissions.py SECURITY.md
        app/sessions_controller.rb hashPassword.ts""",
    "migration": """db/migrate/001_add.rb app/migrations/0001_initial.py alembic/versions/a_b.py schema.prisma
        db/schema.rb V1__init.sql api/service.proto schema.graphql""",
}
PLAIN = """README.md docs/guide.md src/app.py src/authors.py lib/author_list.go src/main.rs notes.txt
    src/components/Button.tsx mailer.py keyboard.js src/tokenizer.py src/passwordless.md docs/description.txt
    src/deployable.py environment.ts package.json.md docs/go.mod.txt"""


@pytest.mark.parametrize(("code", "path"), [(c, p) for c, text in SENSITIVE.items() for p in text.split()])
def test_sensitive_paths(code: str, path: str) -> None:
    for spelt in (path, path.upper(), path.swapcase()):
        floor = floor_of(changed(spelt))
        if spelt == path or code != "security":
            assert [(r.code, r.path) for r in floor.reasons] == [(code, spelt)]
        assert floor.risk is Risk.SENSITIVE or code == "security"


@pytest.mark.parametrize("path", PLAIN.split())
def test_plain_paths(path: str) -> None:
    assert floor_of(changed(path)) == Floor(risk=Risk.TRIVIAL, reasons=())


@pytest.mark.parametrize("path", ["src/AUTH/x.py", "AUTH.PY", "aUtH/x", "User_AUTH.go"])
def test_security_words_in_any_case(path: str) -> None:
    assert codes(floor_of(changed(path))) == ["security"]


def test_every_row_is_reachable() -> None:
    assert {code for code, _ in PATH_ROWS} == {*SENSITIVE, "sensitive_path"}


TESTS = """test_app.py app_test.py conftest.py app.test.ts app.spec.jsx __tests__/app.js cypress/e2e/a.cy.ts app_test.go
    src/test/java/App.java AppTest.java AppIT.java AppTest.kt AppSpec.scala AppSpec.groovy core_test.clj AppTests.cs
    AppTests.fs app_spec.rb spec/models/user.rb test/app_test.rb tests/app.rs app_test.rs AppTest.php Login.phpt
    AppTests.swift AppTests.m app_test.c app_unittest.cc AppTest.cpp app_test.exs app_SUITE.erl AppSpec.hs
    app_test.dart app_spec.lua t/basic.t tests/testthat/test-app.R test/runtests.jl test_app.ml app.bats
    App.Tests.ps1 Token.t.sol app_spec.cr login.feature login.robot a.tftest.hcl"""
NO_TESTS = """src/app.py contest.py latest.ts attest.go spec/openapi.yaml tests/data/big.json tests/README.md
    protest.rb Latest.java Commit.java Contest.kt Edit.java Inspec.scala
    testimonials.js src/spectrum.rs inspect.py src/testify.md"""


@pytest.mark.parametrize("path", TESTS.split())
def test_a_deleted_test_is_sensitive(path: str) -> None:
    floor = floor_of(changed(path, status="removed", patch=None, additions=0, deletions=3))
    assert floor.risk is Risk.SENSITIVE
    assert ("test_deleted", path) in [(r.code, r.path) for r in floor.reasons]


@pytest.mark.parametrize("path", NO_TESTS.split())
def test_other_deletions_are_not(path: str) -> None:
    assert "test_deleted" not in codes(floor_of(changed(path, status="removed")))


@pytest.mark.parametrize(("deletions", "risk"), [(9, Risk.TRIVIAL), (10, Risk.LOGIC), (11, Risk.LOGIC)])
def test_a_test_that_lost_lines(deletions: int, risk: Risk) -> None:
    floor = floor_of(changed("pkg/app_test.go", deletions=deletions, additions=40))
    assert floor.risk is risk
    assert codes(floor) == (["test_shrunk"] if risk is Risk.LOGIC else [])


def test_a_test_moved_out_of_sight_is_deleted() -> None:
    away = changed("old/app.txt", previous_path="tests/test_app.py", status="renamed")
    moved = changed("tests/unit/test_app.py", previous_path="tests/test_app.py", status="renamed")
    copied = changed("old/app.txt", previous_path="tests/test_app.py", status="copied")
    assert codes(floor_of(away)) == ["test_deleted"]
    assert codes(floor_of(moved)) == codes(floor_of(copied)) == []


@pytest.mark.parametrize(
    ("old", "new"), [("src/a.py", "deploy/a.py"), ("deploy/a.py", "src/a.py"), ("DEPLOY/a.py", "b.py")]
)
def test_a_rename_counts_both_paths(old: str, new: str) -> None:
    floor = floor_of(changed(new, previous_path=old, status="renamed"))
    assert floor.risk is Risk.SENSITIVE
    assert [r.path for r in floor.reasons] == [new if "deploy" in new else old]


def test_a_rename_counts_once() -> None:
    floor = floor_of(changed("deploy/b.py", previous_path="deploy/a.py", status="renamed", additions=200))
    assert codes(floor) == ["infrastructure"]
    many = [changed(f"n{i}", previous_path=f"o{i}", status="renamed") for i in range(15)]
    assert floor_of(*many).risk is Risk.TRIVIAL


@pytest.mark.parametrize(
    ("lines", "expected"),
    [(300, (Risk.TRIVIAL, [])), (301, (Risk.LOGIC, ["large"])), (1500, (Risk.LOGIC, ["large"])),
     (1501, (Risk.SENSITIVE, ["very_large"]))],
)  # fmt: skip
def test_lines(lines: int, expected: tuple[Risk, list[str]]) -> None:
    floor = floor_of(changed("a.py", additions=lines - 3, deletions=3))
    assert (floor.risk, codes(floor)) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [(15, (Risk.TRIVIAL, [])), (16, (Risk.LOGIC, ["many_files"])), (50, (Risk.LOGIC, ["many_files"])),
     (51, (Risk.SENSITIVE, ["very_many_files"]))],
)  # fmt: skip
def test_files(count: int, expected: tuple[Risk, list[str]]) -> None:
    floor = floor_of(*(changed(f"{n}.py", additions=1, deletions=0) for n in range(count)))
    assert (floor.risk, codes(floor)) == expected


def test_binaries() -> None:
    assert codes(floor_of(changed("a.bin", status="added", binary=True))) == ["binary_added"]
    assert codes(floor_of(changed("a.bin", status="modified", binary=True))) == []


@pytest.mark.parametrize(
    "status", ["added", "removed", "modified", "renamed", "copied", "changed", "unchanged"]
)
def test_known_statuses_say_nothing_by_themselves(status: str) -> None:
    assert floor_of(changed("a.py", status=status)).risk is Risk.TRIVIAL


@pytest.mark.parametrize("status", ["", "exploded", "ADDED"])
def test_an_unknown_status_is_looked_at(status: str) -> None:
    assert codes(floor_of(changed("a.py", status=status))) == ["unknown_status"]


def test_incomplete_lists_omissions_and_injection() -> None:
    floor = assess(snapshot(changed("a.py"), incomplete=("count_mismatch",)))
    assert (floor.risk, floor.reasons[0].detail) == (Risk.SENSITIVE, "count_mismatch")
    assert assess(snapshot(incomplete=("diff_refused",))).risk is Risk.SENSITIVE
    floor = floor_of(changed("a.py"), omissions=[("a.py", "truncated")])
    assert (floor.risk, floor.reasons[0].path, floor.reasons[0].detail) == (Risk.LOGIC, "a.py", "truncated")
    assert floor_of(changed("a.py"), injection=["hidden_comment"]).risk is Risk.LOGIC


def test_an_empty_change_is_trivial() -> None:
    assert assess(snapshot()) == Floor(risk=Risk.TRIVIAL, reasons=())


def test_own_globs() -> None:
    globs = [compile_glob("services/billing/**"), compile_glob("**/payments/**")]
    for path in ("services/billing/a/b.py", "SERVICES/Billing/x", "a/payments/b"):
        assert codes(floor_of(changed(path), sensitive=globs)) == ["sensitive_path"]
    assert codes(floor_of(changed("services/other/a.py"), sensitive=globs)) == []
    assert codes(floor_of(changed("services/billing/main.tf"), sensitive=globs)) == [
        "infrastructure",
        "sensitive_path",
    ]


def test_the_gravest_reasons_come_first() -> None:
    floor = floor_of(
        changed("a_test.go", deletions=20), changed("go.mod"), changed("z.bin", binary=True, status="added")
    )
    assert codes(floor) == ["dependency", "test_shrunk", "binary_added"]


def test_one_file_alone() -> None:
    assert file_risk(changed("go.mod")) is Risk.SENSITIVE
    assert file_risk(changed("a_test.go", deletions=10)) is Risk.LOGIC
    assert file_risk(changed("a.go")) is Risk.TRIVIAL


files = st.builds(
    changed,
    st.text(max_size=20) | st.sampled_from(["go.mod", "a/test_x.py", "src/auth/x", "README.md", ""]),
    status=st.sampled_from(["added", "removed", "renamed", "odd"]),
    previous_path=st.none() | st.text(max_size=10) | st.sampled_from(["deploy/x", "test_y.py"]),
    additions=st.integers(0, 2000),
    deletions=st.integers(0, 2000),
    binary=st.booleans(),
)


@given(st.lists(files, max_size=6), st.lists(files, max_size=3))
def test_more_changes_never_lower_the_floor(some: list[ChangedFile], more: list[ChangedFile]) -> None:
    assert floor_of(*some, *more).risk.rank >= floor_of(*some).risk.rank


@given(st.lists(files, max_size=6))
def test_the_class_is_the_highest_reason(some: list[ChangedFile]) -> None:
    floor = floor_of(*some)
    assert floor.risk.rank == max((r.risk.rank for r in floor.reasons), default=0)


def test_three_thousand_files_are_quick() -> None:
    many = snapshot(
        *(changed(f"src/module{n % 70}/deeper/still/SomethingLong{n}.{e}", previous_path=f"src/old{n}.{e}")
          for n in range(750) for e in ("py", "tsx", "md", "json"))
    )  # fmt: skip
    assess(snapshot(changed("warm.py")))
    begin = time.process_time()
    assess(many)
    spent = time.process_time() - begin
    assert spent < 0.5, spent  # about 0.1 s on two busy cores
