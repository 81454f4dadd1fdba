"""Which paths the risk floor looks at: data, one block a row of the table in docs/intent-cards.md.

Globs have the meaning of `graft.globs` (case-insensitive; without a slash at any depth). A file is named in
the first row that fits. To add an ecosystem, add a line.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from functools import cache

from graft.globs import GlobSet, compile_glob

CI_AND_REPOSITORY = """
    .github/workflows/**  .github/actions/**  .github/scripts/**  action.yml  action.yaml
    CODEOWNERS  .github/dependabot.yml  .github/dependabot.yaml  .github/settings.yml  .github/rulesets/**
    .github/codeql/**  .github/renovate*  renovate.json*  .renovaterc*  .mergify.yml  .github/mergify.yml
    .gitlab-ci.yml  .gitlab/**  .circleci/**  .travis.yml  azure-pipelines*.yml  azure-pipelines*.yaml
    .azure-pipelines/**  Jenkinsfile*  *.jenkinsfile  .jenkins/**  .buildkite/**  .drone.yml  .drone.star
    .woodpecker.yml  .woodpecker/**  bitbucket-pipelines.yml  appveyor.yml  .appveyor.yml  cloudbuild.yaml
    cloudbuild.yml  buildspec*.yml  .teamcity/**  .semaphore/**  .cirrus.yml  .cirrus.star  wercker.yml  .ci/**
    .tekton/**  .forgejo/**  .gitea/**  .builds/**  .sourcehut/**  dagger.json  earthfile
    .gitmodules  .gitattributes  .pre-commit-config.yaml  .pre-commit-hooks.yaml  .husky/**
    lefthook.yml  .lefthook.yml  .githooks/**  .devcontainer/**  .devcontainer.json  .goreleaser*  .releaserc*
    release-please-config.json  .changeset/config.json  codecov.yml  .codecov.yml  sonar-project.properties
    AGENTS.md  CLAUDE.md  GEMINI.md  .github/copilot-instructions.md  .github/instructions/**  .cursorrules
    .cursor/**  .claude/**  .codex/**  .mcp.json  .vscode/tasks.json  .vscode/settings.json
"""

GRAFT_POLICY = "graft.yaml  graft.yml"

DEPENDENCIES: Mapping[str, str] = {
    "JavaScript": """package.json  package-lock.json  npm-shrinkwrap.json  yarn.lock  pnpm-lock.yaml
        pnpm-workspace.yaml  bun.lock  bun.lockb  deno.json  deno.jsonc  deno.lock  bower.json  lerna.json
        .npmrc  .yarnrc  .yarnrc.yml  .yarn/plugins/**  .yarn/releases/**  .pnpmfile.cjs""",
    "Python": """pyproject.toml  requirements*.txt  requirements*.in  requirements/*.txt  requirements/*.in
        constraints*.txt  setup.py  setup.cfg  Pipfile  Pipfile.lock  poetry.lock  pdm.lock  uv.lock  uv.toml
        pylock*.toml  environment.yml  environment.yaml  conda-lock.yml  pixi.toml  pixi.lock  .pypirc
        pip.conf""",
    "Go": "go.mod  go.sum  go.work  go.work.sum  vendor/modules.txt  Gopkg.toml  Gopkg.lock  glide.yaml",
    "Rust": "Cargo.toml  Cargo.lock  rust-toolchain  rust-toolchain.toml  .cargo/config.toml  .cargo/config",
    "Java and Kotlin": """pom.xml  build.gradle  build.gradle.kts  settings.gradle  settings.gradle.kts
        gradle.properties  gradle.lockfile  *.versions.toml  gradle-wrapper.properties  gradle-wrapper.jar
        verification-metadata.xml  ivy.xml  .mvn/**  gradlew  gradlew.bat  mvnw  mvnw.cmd""",
    "Scala and Clojure": "build.sbt  project/*.sbt  project/*.scala  build.sc  build.mill  project.clj  deps.edn",
    "Ruby": "Gemfile  Gemfile.lock  gems.rb  gems.locked  *.gemspec  .bundle/config",
    "PHP": "composer.json  composer.lock  auth.json",
    ".NET": """*.csproj  *.fsproj  *.vbproj  *.sln  *.slnx  packages.config  packages.lock.json  paket.*
        Directory.Packages.props  Directory.Build.props  Directory.Build.targets  global.json  nuget.config""",
    "Swift and Objective-C": """Package.swift  Package.resolved  Podfile  Podfile.lock  *.podspec  Cartfile
        Cartfile.resolved""",
    "Dart": "pubspec.yaml  pubspec.lock",
    "Elixir and Erlang": "mix.exs  mix.lock  rebar.config  rebar.lock",
    "Haskell": "*.cabal  cabal.project*  stack.yaml  stack.yaml.lock",
    "C and C++": """conanfile.txt  conanfile.py  conan.lock  vcpkg.json  vcpkg-configuration.json
        CMakeLists.txt  meson.build  *.wrap""",
    "Bazel and Nix": """MODULE.bazel  MODULE.bazel.lock  WORKSPACE  WORKSPACE.bazel  maven_install.json
        flake.nix  flake.lock  shell.nix  default.nix""",
    "R, Julia, Perl, Lua": """renv.lock  /DESCRIPTION  Project.toml  Manifest.toml  cpanfile  cpanfile.snapshot
        Makefile.PL  *.rockspec""",
    "OCaml, Zig, Nim, Crystal, Elm": """*.opam  dune-project  build.zig.zon  *.nimble  shard.yml  shard.lock
        elm.json""",
    "Solidity": "foundry.toml  remappings.txt  hardhat.config.*",
    "Tool versions": ".tool-versions  mise.toml  .mise.toml  .nvmrc  .node-version  .python-version  Brewfile",
}

INFRASTRUCTURE = """
    *.tf  *.tfvars  *.tf.json  *.tofu  *.hcl  *.nomad  *.bicep  .terraform.lock.hcl  terraform/**  terragrunt/**
    Dockerfile  Dockerfile.*  *.dockerfile  Containerfile  docker-compose*  compose.yml  compose.yaml
    compose.*.yml  compose.*.yaml  docker-bake.*  docker/**  docker-entrypoint*  entrypoint.sh
    **/k8s/**  **/kubernetes/**  **/helm/**  **/charts/**  Chart.yaml  Chart.lock  helmfile*  kustomization.yaml
    kustomization.yml  skaffold.yaml  Tiltfile  **/argocd/**  **/flux/**
    **/ansible/**  **/playbooks/**  ansible.cfg  **/puppet/**  **/chef/**  **/salt/**  *.pp
    Pulumi.*  cdk.json  **/cloudformation/**  samconfig.toml  serverless.yml  serverless.yaml  serverless.ts
    sst.config.ts  fly.toml  render.yaml  vercel.json  netlify.toml  wrangler.toml  wrangler.json  wrangler.jsonc
    Procfile  app.yaml  app.yml  heroku.yml  railway.json  railway.toml  firebase.json  amplify.yml  apprunner.yaml
    nginx*.conf  **/nginx/**  Caddyfile  haproxy.cfg  envoy.yaml  traefik.*  httpd.conf  .htaccess  supervisord.conf
    *.service  *.timer  Vagrantfile  crontab  *.cron
    **/infra/**  **/infrastructure/**  **/deploy/**  **/deployment/**  **/deployments/**  **/provisioning/**
    deploy.sh  deploy.py  deploy.yml  deploy.yaml
"""

SECRETS = """
    .env  .env.*  *.env  *.pem  *.key  *.p12  *.pfx  *.jks  *.keystore  *.kdbx  *.crt  *.cer  *.csr  *.der  *.gpg
    *.asc  id_rsa*  id_ed25519*  id_ecdsa*  .netrc  .htpasswd  .sops.yaml  *.sops.*  .vault-token  credentials
    .aws/**  .ssh/**  .gnupg/**  .gitleaks.toml  .secrets.baseline  SECURITY.md
"""

MIGRATIONS_AND_SCHEMA = """
    **/migrations/**  **/migration/**  **/migrate/**  **/alembic/**  alembic.ini  **/flyway/**  **/liquibase/**
    **/db/changelog/**  **/versions/*_*.py  knexfile.*  *.sql  *.ddl  *.prisma  *.dbml  schema.*  structure.sql
    **/schema/**  **/schemas/**  *.proto  *.avsc  *.avdl  *.graphqls  *.xsd  drizzle.config.*  **/drizzle/**  *.edgeql
    ormconfig.*  **/prisma/**  dbt_project.yml  sqitch.plan
"""

# Words of a path, split at punctuation and at capitals: `AuthService.java` and `user_auth.go` hold `auth`,
# `authors.py` does not. Digits at a word's end are dropped (`oauth2`).
SECURITY_WORDS = """
    auth authn authz authentication authenticate authenticated authenticator authorization authorize authorizer
    authorisation authorise oauth oidc openid saml sso login logins logout signin signup signout mfa totp otp 2fa
    webauthn passkey passkeys session sessions cookie cookies csrf xsrf cors csp password passwords passwd passphrase
    credential credentials secret secrets vault keyring keychain keystore token tokens jwt jwts jwk jwks apikey apikeys
    security secure crypto cryptography cryptographic encryption encrypt encrypted decrypt decryption cipher ciphers
    signing signature signatures hmac hashing kms tls ssl x509 pki certificate certificates cert certs
    permission permissions rbac abac acl acls role roles iam ldap kerberos sudo sudoers privilege privileges
    firewall sandbox sanitize sanitizer sanitizers sanitization
"""

# Conventions for the names of test files, by language. A capital counts as one: `*Test.java` is not `Latest.java`.
TEST_NAMES: Mapping[str, str] = {
    "Python": "test_*.py  *_test.py  tests.py  conftest.py",
    "JavaScript and TypeScript": """*.test.js  *.test.jsx  *.test.ts  *.test.tsx  *.test.mjs  *.test.cjs  *.test.mts
        *.test.cts  *.test.vue  *.test.svelte  *.spec.js  *.spec.jsx  *.spec.ts  *.spec.tsx  *.spec.mjs  *.spec.cjs
        *.spec.mts  *.spec.cts  *.cy.js  *.cy.ts  *.cy.jsx  *.cy.tsx  *.e2e.js  *.e2e.ts  *-test.js  *-test.ts
        *_test.js  *_test.ts  *_test.tsx  *.test-d.ts""",
    "Go": "*_test.go",
    "Java": "*Test.java  *Tests.java  *TestCase.java  *IT.java  Test*.java",
    "Kotlin": "*Test.kt  *Tests.kt  *Spec.kt",
    "Scala": "*Test.scala  *Tests.scala  *Spec.scala  *Suite.scala",
    "Groovy": "*Test.groovy  *Tests.groovy  *Spec.groovy",
    "Clojure": "*_test.clj  *_test.cljs  *_test.cljc",
    "C#": "*Test.cs  *Tests.cs  *Spec.cs  *Specs.cs",
    "F# and Visual Basic": "*Test.fs  *Tests.fs  *Test.vb  *Tests.vb",
    "Ruby": "*_spec.rb  *_test.rb  test_*.rb",
    "Rust": "*_test.rs  *_tests.rs  test_*.rs  tests.rs  test.rs",
    "PHP": "*Test.php  *Cest.php  *Cept.php  *.phpt",
    "Swift": "*Test.swift  *Tests.swift  *Spec.swift",
    "Objective-C": "*Test.m  *Tests.m  *Test.mm  *Tests.mm",
    "C": "*_test.c  *_tests.c  test_*.c  *_unittest.c",
    "C++": """*_test.cc  *_test.cpp  *_test.cxx  *_tests.cpp  *_unittest.cc  *_unittest.cpp  *Test.cpp  *Tests.cpp
        *Test.cc  test_*.cc  test_*.cpp  *-test.cpp  *-test.cc""",
    "Elixir": "*_test.exs",
    "Erlang": "*_suite.erl  *_tests.erl  *_test.erl",
    "Haskell": "*Spec.hs  *Test.hs  *Tests.hs",
    "Dart": "*_test.dart",
    "Lua": "*_spec.lua  *_test.lua  test_*.lua",
    "Perl": "*.t",
    "R": "test-*.r  test_*.r",
    "Julia": "runtests.jl  test_*.jl  *_test.jl",
    "OCaml": "test_*.ml  *_test.ml",
    "Shell": "*.bats  *_test.sh  test_*.sh  *_spec.sh  test-*.sh",
    "PowerShell": "*.tests.ps1",
    "Solidity": "*.t.sol",
    "Zig, Nim, Crystal, D": "*_test.zig  test_*.nim  *_spec.cr  *_test.d",
    "Elm and Gleam": "*Test.elm  *Tests.elm  *_test.gleam",
    "Terraform": "*.tftest.hcl  *_test.tf",
    "Gherkin and Robot Framework": "*.feature  *.robot",
}
# A file of code below one of these directories is a test as well; fixtures and data there are not.
TEST_DIRECTORIES = """
    test tests __tests__ spec specs testing unittest unittests androidtest integrationtest functionaltest uitests
    integration-tests test-suite testsuite testthat e2e cypress
"""
CODE_EXTENSIONS = """
    py pyx js jsx ts tsx mjs cjs mts cts vue svelte go java kt kts scala groovy clj cljs cljc cs fs vb rb rs php swift
    m mm c cc cpp cxx h hh hpp ex exs erl hs dart lua pl pm t r jl ml mli sh bash zsh bats ps1 sol zig nim cr d elm
    gleam f90 adb pas coffee el lisp rkt scm tcl vhd v sv
"""

# Written by a tool: named to the model, not shown.
GENERATED = """
    package-lock.json  npm-shrinkwrap.json  yarn.lock  pnpm-lock.yaml  bun.lock  bun.lockb  deno.lock  Pipfile.lock
    poetry.lock  pdm.lock  uv.lock  pylock*.toml  conda-lock.yml  pixi.lock  go.sum  go.work.sum  Cargo.lock
    Gemfile.lock  composer.lock  packages.lock.json  Package.resolved  Podfile.lock  Cartfile.resolved  pubspec.lock
    mix.lock  rebar.lock  stack.yaml.lock  conan.lock  MODULE.bazel.lock  flake.lock  renv.lock  shard.lock
    gradle.lockfile  verification-metadata.xml  Chart.lock  .terraform.lock.hcl  *.lockb
    *.min.js  *.min.css  *.min.mjs  *.map  *.bundle.js  *.pb.go  *_pb2.py  *_pb2.pyi  *_pb2_grpc.py  *.pb.cc  *.pb.h
    *_pb.js  *_pb.ts  *_pb.d.ts  *.g.dart  *.freezed.dart  *.g.cs  *.designer.cs  *.generated.*  *_generated.*
    *.gen.go  *.gen.ts  zz_generated*  **/__generated__/**  **/__snapshots__/**  *.snap  **/generated/**
    **/node_modules/**  **/.yarn/cache/**  .pnp.*
"""


def globs(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@cache
def sensitive_rows() -> tuple[GlobSet, Mapping[str, str]]:
    """All rows of the sensitive table as one set, and the row's code by glob."""
    table = {
        "graft_policy": GRAFT_POLICY,
        "ci_config": CI_AND_REPOSITORY,
        "dependency": " ".join(DEPENDENCIES.values()),
        "infrastructure": INFRASTRUCTURE,
        "security": SECRETS,
        "migration": MIGRATIONS_AND_SCHEMA,
    }
    code_of = {glob: code for code, text in reversed(table.items()) for glob in globs(text)}
    ordered = [glob for text in table.values() for glob in globs(text)]
    return _compiled(ordered), code_of


def is_test(path: str) -> bool:
    """Whether `path` is named like a test, or is code in a directory of tests."""
    lowered = path.lower()
    *directories, name = lowered.split("/")
    _, dot, extension = name.rpartition(".")
    if dot and extension in _words(CODE_EXTENSIONS) and not _words(TEST_DIRECTORIES).isdisjoint(directories):
        return True
    plain, capitals = _test_names()
    return plain.matches(lowered) or (
        extension in capitals and capitals[extension].match(path.rpartition("/")[2]) is not None
    )


def is_generated(path: str) -> bool:
    return _generated().matches(path)


def has_security_word(path: str) -> bool:
    lowered = path.lower()
    return any(_is_security_word(word) for word in _WORD.findall(lowered)) or (
        lowered != path and any(_is_security_word(word.lower()) for word in _CAPITALISED.findall(path))
    )


_WORD = re.compile(r"[a-z0-9]+")
_CAPITALISED = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _is_security_word(word: str) -> bool:
    words = _words(SECURITY_WORDS)
    return word in words or word.rstrip("0123456789") in words


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _compiled(patterns: Iterable[str]) -> GlobSet:
    return GlobSet(compile_glob(pattern) for pattern in dict.fromkeys(patterns))


@cache
def _test_names() -> tuple[GlobSet, Mapping[str, re.Pattern[str]]]:
    """Globs without capitals, and by extension one expression for those with capitals."""
    names = globs(" ".join(TEST_NAMES.values()))
    sources: dict[str, list[str]] = {}
    for name in names:
        if name != name.lower():
            sources.setdefault(name.rpartition(".")[2], []).append(fnmatch.translate(name))
    capitals = {extension: re.compile("|".join(each)) for extension, each in sources.items()}
    return _compiled(name for name in names if name == name.lower()), capitals


@cache
def _generated() -> GlobSet:
    return _compiled(globs(GENERATED))
