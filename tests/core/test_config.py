from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from graft import config
from graft.config import (
    ActorSettings,
    Address,
    BrokerSettings,
    DatabaseSettings,
    IngressSettings,
    Secret,
    Settings,
)
from graft.errors import ConfigError

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"
SENTINEL = "hunter2"


@pytest.fixture
def environment(app_private_key: str) -> dict[str, str]:
    """The least that `graft serve` needs."""
    return {
        "DATABASE_URL": "postgresql://graft:hunter2@db/graft",
        "NATS_URL": "nats://graft:hunter2@nats:4222",
        "GITHUB_APP_ID": "12",
        "GITHUB_APP_PRIVATE_KEY": app_private_key,
        "GITHUB_WEBHOOK_SECRET": "hunter2 hunter2",
    }


def problems(environment: dict[str, str], **variables: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        Settings.from_env({**environment, **variables})
    return caught.value.problems


def test_the_least_environment_has_documented_defaults(environment: dict[str, str]) -> None:
    settings = Settings.from_env(environment)
    assert settings.github_app_id == 12
    assert settings.github_api_url == "https://api.github.com"
    assert settings.listen == Address("127.0.0.1", 8080)
    assert settings.daily_budget_usd == Decimal(5)
    assert (settings.fast_model, settings.strong_model) == ("claude-haiku-5-5", "claude-opus-5-5")
    assert settings.sensitive_paths == ()
    assert settings.anthropic_api_key is None
    assert settings.github_app_slug is None
    assert config.warnings(environment, settings) == ()


def test_all_problems_come_at_once_and_name_no_value() -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.from_env(
            {
                "DATABASE_URL": f"mysql://{SENTINEL}",
                "GITHUB_APP_ID": SENTINEL,
                "GITHUB_APP_PRIVATE_KEY": f"/no/such/{SENTINEL}",
                "GRAFT_LISTEN": SENTINEL,
                "GRAFT_SETTLE_SECONDS": SENTINEL,
                "GRAFT_INTENT_SENSITIVE_PATHS": f"ok/**,./{SENTINEL},{{{SENTINEL}}}",
            }
        )
    names = [problem.partition(":")[0] for problem in caught.value.problems]
    assert names == [
        "DATABASE_URL",
        "NATS_URL",
        "GITHUB_APP_ID",
        "GITHUB_APP_PRIVATE_KEY",
        "GRAFT_LISTEN",
        "GRAFT_INTENT_SENSITIVE_PATHS",
        "GRAFT_INTENT_SENSITIVE_PATHS",
        "GRAFT_SETTLE_SECONDS",
        "GITHUB_WEBHOOK_SECRET",
    ]
    assert SENTINEL not in str(caught.value)
    globs = [problem for problem in caught.value.problems if "SENSITIVE" in problem]
    assert [problem.split(":")[1].strip() for problem in globs] == ["glob 2", "glob 3"]


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_a_blank_variable_is_unset(blank: str, environment: dict[str, str]) -> None:
    settings = Settings.from_env(
        {
            **environment,
            "GRAFT_LISTEN": blank,
            "ANTHROPIC_API_KEY": blank,
            "GITHUB_WEBHOOK_SECRET_PREVIOUS": blank,
        }
    )
    assert settings.listen == Address("127.0.0.1", 8080)
    assert settings.anthropic_api_key is None
    assert settings.github_webhook_secret_previous is None
    assert problems(environment, NATS_URL=blank)[0].startswith("NATS_URL: not set")


def test_secrets_print_as_stars_and_no_encoder_takes_them(environment: dict[str, str]) -> None:
    settings = Settings.from_env({**environment, "ANTHROPIC_API_KEY": SENTINEL})
    for shown in (repr(settings), str(settings), f"{settings.database_url}", f"{settings.nats_url!r}"):
        assert SENTINEL not in shown
        assert "PRIVATE KEY" not in shown
    with pytest.raises(TypeError):
        msgspec.json.encode(settings)
    assert settings.anthropic_api_key == Secret(SENTINEL)
    assert settings.github_webhook_secret.value == "hunter2 hunter2"


def test_the_line_break_of_a_secret_file_is_not_part_of_the_secret(environment: dict[str, str]) -> None:
    settings = Settings.from_env({**environment, "GITHUB_WEBHOOK_SECRET": " keeps blanks \r\n"})
    assert settings.github_webhook_secret.value == " keeps blanks "


# --------------------------------------------------------------------------------------------- the private key


@pytest.mark.parametrize(
    "write",
    [
        lambda pem: pem,
        lambda pem: pem.strip(),
        lambda pem: pem.replace("\n", "\\n"),
        lambda pem: pem.replace("\n", "\\r\\n"),
        lambda pem: pem.replace("\n", "\r\n"),
        lambda pem: base64.b64encode(pem.encode()).decode(),
        lambda pem: base64.encodebytes(pem.encode()).decode(),
    ],
    ids=["pem", "stripped", "escaped", "escaped crlf", "crlf", "base64", "base64 in lines"],
)
def test_a_private_key_may_be_written_in_many_ways(
    write: Callable[[str], str], environment: dict[str, str], app_private_key: str
) -> None:
    settings = Settings.from_env({**environment, "GITHUB_APP_PRIVATE_KEY": write(app_private_key)})
    assert settings.github_app_private_key.value.split() == app_private_key.split()


def test_a_private_key_may_be_a_path(
    environment: dict[str, str], app_private_key: str, tmp_path: Path
) -> None:
    path = tmp_path / "app key.pem"
    path.write_text(app_private_key)
    settings = Settings.from_env({**environment, "GITHUB_APP_PRIVATE_KEY": str(path)})
    assert settings.github_app_private_key.value == app_private_key


def pem_of(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, password: bytes | None = None) -> str:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
            "not a private key in PEM",
        ),
        ("-----BEGIN RSA PRIVATE KEY-----é", "ASCII"),
        (base64.b64encode(b"hunter2").decode(), "neither a PEM key nor base64"),
        ("/no/such/hunter2.pem", "FileNotFoundError"),
        ("/", "IsADirectoryError"),
        ("a\0b", "ValueError"),
        ("x" * 100_000, "OSError"),
        (pem_of(ec.generate_private_key(ec.SECP256R1())), "not an RSA key"),
        (pem_of(rsa.generate_private_key(65537, 2048), b"hunter2"), "protected by a password"),
    ],
)
def test_other_keys_are_refused_with_the_reason(text: str, said: str, environment: dict[str, str]) -> None:
    (problem,) = problems(environment, GITHUB_APP_PRIVATE_KEY=text)
    assert problem.startswith("GITHUB_APP_PRIVATE_KEY: ")
    assert said in problem
    assert SENTINEL not in problem


# ------------------------------------------------------------------------------------------------ single values


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DATABASE_URL", "postgres.example.com"),
        ("NATS_URL", "nats://"),
        ("NATS_URL", "http://nats:4222"),
        ("NATS_URL", "nats://a:4222,nats://b:port"),
        ("NATS_CREDS", "/no/such/file"),
        ("GRAFT_NATS_PREFIX", "has.dot"),
        ("GRAFT_NATS_PREFIX", "Graft"),
        ("GITHUB_APP_ID", "0"),
        ("GITHUB_APP_ID", "-1"),
        ("GITHUB_APP_ID", "1_000"),
        ("GITHUB_APP_ID", "٣"),
        ("GITHUB_APP_ID", "9" * 5_000),
        ("GITHUB_APP_SLUG", "my app"),
        ("GITHUB_API_URL", "api.github.com"),
        ("GITHUB_API_URL", "https://user:x@host"),
        ("GITHUB_API_URL", "https://host/?q"),
        ("GITHUB_API_URL", "https://ho st"),
        ("GITHUB_API_URL", "https://[::1"),
        ("GRAFT_LISTEN", "8080"),
        ("GRAFT_LISTEN", "localhost:65536"),
        ("GRAFT_LISTEN", "::1:8080"),
        ("GRAFT_INTENT_FAST_MODEL", "two words"),
        ("GRAFT_INTENT_DAILY_BUDGET_USD", "-1"),
        ("GRAFT_INTENT_DAILY_BUDGET_USD", "NaN"),
        ("GRAFT_INTENT_DAILY_BUDGET_USD", "1e9"),
        ("GRAFT_INTENT_DAILY_BUDGET_USD", "five"),
        ("GRAFT_FEEDBACK_POLL_CRON", "every day"),
        ("GRAFT_FEEDBACK_POLL_CRON", "61 * * * *"),
        ("GRAFT_FEEDBACK_POLL_CRON", "0 0 30 2 *"),
        ("GRAFT_FEEDBACK_POLL_CRON", "* * * * * *"),
        ("GRAFT_SETTLE_SECONDS", "inf"),
        ("GRAFT_SETTLE_SECONDS", "3601"),
        ("GRAFT_STREAM_REPLICAS", "2"),
        ("GRAFT_STREAM_MAX_BYTES", "256MB"),
        ("GRAFT_PARTITIONS", "0"),
        ("GRAFT_LOG_LEVEL", "loud"),
        ("GRAFT_LOG_FORMAT", "xml"),
        ("GRAFT_INCIDENT_LABEL", "x" * 51),
        ("GITHUB_WEBHOOK_SECRET", "\udcff"),
    ],
)
def test_what_cannot_be_used_is_one_problem_of_that_variable(
    name: str, text: str, environment: dict[str, str]
) -> None:
    (problem,) = problems(environment, **{name: text})
    assert problem.startswith(f"{name}: ")
    assert text not in problem.removeprefix(f"{name}: ") or len(text) < 5


def test_what_can_be_used_is_parsed(environment: dict[str, str], tmp_path: Path) -> None:
    credentials = tmp_path / "graft.creds"
    credentials.write_text("x")
    settings = Settings.from_env(
        {
            **environment,
            "NATS_URL": "nats://a:4222, tls://b:4222",
            "NATS_CREDS": str(credentials),
            "GITHUB_API_URL": "https://ghe.example.com/api/v3/",
            "GRAFT_LISTEN": "[::1]:0",
            "GRAFT_INTENT_DAILY_BUDGET_USD": "2.50",
            "GRAFT_INTENT_SENSITIVE_PATHS": "services/billing/**, **/payments/**,",
            "GRAFT_SETTLE_SECONDS": "0.5",
            "GRAFT_LOG_LEVEL": "DEBUG",
        }
    )
    assert settings.nats_url.value == "nats://a:4222,tls://b:4222"
    assert settings.nats_creds == str(credentials)
    assert settings.github_api_url == "https://ghe.example.com/api/v3"
    assert (settings.listen, str(settings.listen)) == (Address("::1", 0), "[::1]:0")
    assert settings.daily_budget_usd == Decimal("2.50")
    assert [glob.pattern for glob in settings.sensitive_paths] == ["services/billing/**", "**/payments/**"]
    assert settings.settle_seconds == 0.5
    assert settings.log_level == "debug"


def test_values_that_contradict_each_other(environment: dict[str, str]) -> None:
    assert problems(environment, GRAFT_SETTLE_SECONDS="60", GRAFT_SETTLE_CAP_SECONDS="30") == (
        "GRAFT_SETTLE_CAP_SECONDS: shorter than GRAFT_SETTLE_SECONDS; raise it",
    )
    (problem,) = problems(environment, GITHUB_WEBHOOK_SECRET_PREVIOUS=environment["GITHUB_WEBHOOK_SECRET"])
    assert problem.startswith("GITHUB_WEBHOOK_SECRET_PREVIOUS: the same as")


@given(st.sampled_from([v.name for v in config.variables(Settings).values()]), st.text(max_size=60))
def test_no_text_makes_it_fail_otherwise(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:  # at least for the other ones that are required
        Settings.from_env({name: text})
    assert all(": " in problem for problem in caught.value.problems)
    if len(text) > 20:
        assert text not in str(caught.value)


# ------------------------------------------------------------------------------------------ parts, and warnings


def test_operators_and_migrations_need_only_their_own(environment: dict[str, str]) -> None:
    assert (
        DatabaseSettings.from_env({"DATABASE_URL": "postgres://x/y"}).database_url.value == "postgres://x/y"
    )
    broker = BrokerSettings.from_env({"NATS_URL": "nats://x:4222"})
    assert (broker.nats_url.value, broker.nats_prefix, broker.nats_creds) == ("nats://x:4222", "graft", None)
    with pytest.raises(ConfigError, match=r"\ADATABASE_URL: not set\. [^;]*\Z"):
        DatabaseSettings.from_env({})


def test_ingress_and_actors_need_only_their_own(environment: dict[str, str]) -> None:
    held_back = ("DATABASE_URL", "GITHUB_APP_PRIVATE_KEY")
    ingress = IngressSettings.from_env({n: text for n, text in environment.items() if n not in held_back})
    assert ingress.github_webhook_secret == Settings.from_env(environment).github_webhook_secret
    actors = ActorSettings.from_env({n: t for n, t in environment.items() if n != "GITHUB_WEBHOOK_SECRET"})
    assert not isinstance(actors, Settings)
    assert "GITHUB_WEBHOOK_SECRET" not in {each.name for each in config.effective(actors)}
    same = {**environment, "GITHUB_WEBHOOK_SECRET_PREVIOUS": environment["GITHUB_WEBHOOK_SECRET"]}
    with pytest.raises(ConfigError, match="the same as"):
        IngressSettings.from_env(same)
    assert ActorSettings.from_env(same) == actors


def test_misspelt_names_and_odd_values_are_warned_of(environment: dict[str, str]) -> None:
    odd = {
        **environment,
        "GRAFT_SETTLE_SECOND": SENTINEL,
        "GRAFT_TEST_NATS_URL": "x",
        "GRAFT_QUITE_ELSE": SENTINEL,
        "GITHUB_WEBHOOK_SECRETS": SENTINEL,
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": "http://localhost:9",
        "GRAFT_INTENT_SENSITIVE_PATHS": "café/**,straße/**",
    }
    found = config.warnings(odd, Settings.from_env(odd))
    assert found == (
        "GITHUB_WEBHOOK_SECRETS: not a setting of Graft; did you mean GITHUB_WEBHOOK_SECRET?",
        "GRAFT_QUITE_ELSE: not a setting of Graft",
        "GRAFT_SETTLE_SECOND: not a setting of Graft; did you mean GRAFT_SETTLE_SECONDS?",
        "GRAFT_INTENT_SENSITIVE_PATHS: holds a glob with characters outside ASCII",
        "GITHUB_API_URL: not https, tokens travel unencrypted",
    )


def test_the_document_is_what_the_struct_says() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == config.reference(), (
        "python -m graft.config > docs/configuration.md"
    )


def test_every_setting_comes_from_exactly_one_variable_and_is_documented() -> None:
    found = config.variables(Settings)
    assert set(found) == set(Settings.__struct_fields__)
    names = [variable.name for variable in found.values()]
    assert len(names) == len(set(names))
    assert all(variable.doc.endswith(".") for variable in found.values())
    for variable in found.values():
        if variable.default is not None:
            variable.parse(variable.default)
