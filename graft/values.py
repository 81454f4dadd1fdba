"""How the text of one setting becomes a value, with the reason when it cannot.

A reason says what is expected and never holds what was given: it goes to logs and terminals.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NoReturn
from urllib.parse import SplitResult, urlsplit

from cronsim import CronSim, CronSimError
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from msgspec import Struct

from graft.globs import Glob, GlobListError, compile_list

_LARGEST_FILE = 64 * 1024


class Invalid(ValueError):
    """The text is no such value. `reasons` do not quote it."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class Secret:
    """A text that prints as stars; `value` is the only way to it. Not a Struct, so that no encoder takes it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def value(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"


class Address(Struct, frozen=True):
    """Where a server listens. Port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _refuse(reason: str) -> NoReturn:
    raise Invalid(reason) from None


def secret(text: str) -> Secret:
    # A secret that was read from a file often ends with that file's line break.
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse("must be UTF-8")
    return Secret(text.strip("\r\n"))


def _url(text: str, schemes: tuple[str, ...]) -> SplitResult:
    try:
        url = urlsplit(text.strip())
        _ = url.port
    except ValueError:
        _refuse("not a URL")
    if url.scheme not in schemes:
        _refuse(f"not a URL that starts with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    if any(ord(character) <= 32 or ord(character) == 127 for character in text.strip()):
        _refuse("a URL cannot hold blanks or control characters")
    return url


def database_url(text: str) -> Secret:
    _url(text, ("postgresql", "postgres"))
    return Secret(text.strip())


def nats_url(text: str) -> Secret:
    servers = [server.strip() for server in text.split(",")]
    for server in servers:
        if not _url(server, ("nats", "tls", "ws", "wss")).hostname:
            _refuse("a URL without a host")
    return Secret(",".join(servers))


def http_url(text: str) -> str:
    url = _url(text, ("https", "http"))
    if not url.hostname:
        _refuse("a URL without a host")
    if url.username is not None or url.password is not None or url.query or url.fragment:
        _refuse("must be a plain root, without user, password, query or fragment")
    return text.strip().rstrip("/")


def readable_file(text: str) -> str:
    path = Path(text.strip()).expanduser()
    try:
        with path.open("rb") as file:
            file.read(1)
    except (OSError, ValueError) as error:
        _refuse(f"names a file that cannot be read ({type(error).__name__})")
    return str(path)


def prefix(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", text.strip()):
        _refuse("must be 1 to 32 of a-z, 0-9, _ and -, starting with a letter")
    return text.strip()


def whole(least: int, most: int = 2**63 - 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        # int() alone would take underscores, other scripts' digits and any length.
        if not re.fullmatch(r"[+]?[0-9]{1,19}", text.strip()) or not least <= int(text) <= most:
            _refuse(f"must be a whole number of at least {least}" + (f" and at most {most}" * (most < 2**62)))
        return int(text)

    return parse


def one_of_numbers(*choices: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        return int(one_of(*map(str, choices))(text))

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.strip().lower() not in choices:
            _refuse(f"must be one of {', '.join(choices)}")
        return text.strip().lower()

    return parse


def _decimal(text: str, expected: str) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        _refuse(expected)
    if not number.is_finite() or "_" in text:
        _refuse(expected)
    return number


def amount(text: str) -> Decimal:
    expected = "must be an amount of US dollars from 0 to 100000, such as 5 or 2.50"
    number = _decimal(text, expected)
    if not 0 <= number <= 100_000:
        _refuse(expected)
    return number


def seconds(least: int, most: int) -> Callable[[str], float]:
    def parse(text: str) -> float:
        expected = f"must be a number of seconds from {least} to {most}"
        number = _decimal(text, expected)
        if not least <= number <= most:
            _refuse(expected)
        return float(number)

    return parse


def days(least: int, most: int) -> Callable[[str], float]:
    def parse(text: str) -> float:
        expected = f"must be a number of days from {least} to {most}"
        number = _decimal(text, expected)
        if not least <= number <= most:
            _refuse(expected)
        return float(number)

    return parse


def slug(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}", text.strip()):
        _refuse("must be the App's name as in its URL: letters, digits and -")
    return text.strip()


def label(text: str) -> str:
    if len(text.strip()) > 50 or not text.strip().isprintable():
        _refuse("must be a label's name of at most 50 printable characters")
    return text.strip()


def model_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}", text.strip()):
        _refuse("must be the name of a model, such as claude-opus-5-5")
    return text.strip()


def address(text: str) -> Address:
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})", text.strip())
    if match is None or int(match[2]) > 65_535:
        _refuse("must be host:port, such as 127.0.0.1:8080 or [::1]:8080")
    return Address(match[1].strip("[]"), int(match[2]))


def cron(text: str) -> str:
    expression = text.strip()
    try:
        if len(expression.split()) != 5 or len(expression) > 200:
            _refuse("must be a cron expression of five fields, such as */15 * * * *")
        next(CronSim(expression, datetime.now(UTC)))
    except (CronSimError, StopIteration):
        _refuse("must be a cron expression of five fields that comes true, such as */15 * * * *")
    return expression


def globs(text: str) -> tuple[Glob, ...]:
    try:
        return tuple(compile_list(text))
    except GlobListError as error:
        raise Invalid(*(f"glob {position}: {reason}" for position, reason in error.problems)) from None


def private_key(text: str) -> Secret:
    pem = _pem(text.strip())
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError:
        _refuse("the key is protected by a password; remove it (openssl rsa)")
    except (ValueError, UnsupportedAlgorithm):
        _refuse("not a private key in PEM; use the .pem file that GitHub gave out, whole")
    if not isinstance(key, RSAPrivateKey):
        _refuse("not an RSA key; GitHub signs in Apps with RSA")
    return Secret(pem.decode("ascii"))


def _pem(text: str) -> bytes:
    if text.startswith("-----BEGIN"):
        # One line with escapes is what .env files and many secret stores make of a PEM.
        return _ascii(text.replace("\\r", "").replace("\\n", "\n"))
    try:
        decoded = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if decoded.lstrip().startswith(b"-----BEGIN"):
        return _ascii(decoded.decode("ascii", "replace"))
    path = Path(text).expanduser()
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE)
    except (OSError, ValueError) as error:
        _refuse(
            "neither a PEM key nor base64 of one, and as a path names a file that cannot be read "
            f"({type(error).__name__})"
        )
    return content


def _ascii(text: str) -> bytes:
    try:
        return text.encode("ascii")
    except UnicodeEncodeError:
        _refuse("a PEM key has ASCII characters only")
