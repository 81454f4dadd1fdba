"""Which broker `graftctl` talks to, and as whom: options, then the environment, then the `nats` tool's contexts.

A context is a JSON file under `~/.config/nats/context`; `context.txt` beside that directory names the selected
one. Whoever uses `nats` already has nothing to set up here.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from graft import values
from graft.errors import ConfigError

# As much of a context as a connection needs; everything else in the file is skipped.


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A context of the `nats` tool."""

    url: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    creds: str = ""
    nkey: str = ""
    cert: str = ""
    key: str = ""
    ca: str = ""
    nsc: str = ""
    inbox_prefix: str = ""


class Broker(msgspec.Struct, frozen=True, kw_only=True):
    """Where to connect and how to prove who one is. `origin` says what decided, for error messages."""

    url: str
    prefix: str
    origin: str
    context: Context = Context()

    def __repr__(self) -> str:
        return f"Broker(origin={self.origin!r}, prefix={self.prefix!r})"

    def arguments(self) -> dict[str, Any]:
        """What nats-py wants to know. Raises ConfigError for files that cannot be used."""
        context = self.context
        found: dict[str, Any] = {
            "servers": self.url.split(","),
            "inbox_prefix": context.inbox_prefix or f"_INBOX_{self.prefix}_operator",
        }
        if context.creds:
            found["user_credentials"] = _file(context.creds, "--creds, NATS_CREDS, or `creds` of the context")
        if context.nkey:
            found["nkeys_seed"] = _file(context.nkey, f"{self.origin}: `nkey`")
        for name in ("user", "password", "token"):
            if value := getattr(context, name):
                found[name] = value
        if context.ca or context.cert:
            try:
                tls = ssl.create_default_context(
                    cafile=_file(context.ca, f"{self.origin}: `ca`") if context.ca else None
                )
                if context.cert:
                    tls.load_cert_chain(
                        _file(context.cert, f"{self.origin}: `cert`"),
                        _file(context.key, f"{self.origin}: `key`") if context.key else None,
                    )
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(
                    [f"{self.origin}: the TLS files cannot be used ({type(error).__name__})"]
                ) from None
            found["tls"] = tls
        return found


def choose(
    environment: Mapping[str, str],
    *,
    server: str | None = None,
    creds: str | None = None,
    context: str | None = None,
    prefix: str | None = None,
) -> Broker:
    """The broker to use: `--server` and `--context`, then NATS_URL, then the selected context.

    `--creds` (or NATS_CREDS) goes with any of them. Raises ConfigError naming what to set.
    """
    try:
        chosen = values.prefix(prefix or environment.get("GRAFT_NATS_PREFIX") or "graft")
    except values.Invalid as invalid:
        raise ConfigError([f"--prefix, GRAFT_NATS_PREFIX: {reason}" for reason in invalid.reasons]) from None
    directory = _contexts(environment)
    url = server or (None if context else environment.get("NATS_URL"))
    found, origin = Context(), "--server" if server else "NATS_URL"
    name = context or (None if url else _selected(directory))
    if name is not None:
        found, origin = _read(directory / f"{name}.json"), f"context {name}"
        if found.nsc:
            raise ConfigError([f"{origin}: uses nsc, which only the nats tool knows; give --creds"])
    url = url or found.url
    if not url:
        raise ConfigError(
            ["no broker chosen: give --server nats://HOST:4222, set NATS_URL, or run `nats context select`"]
        )
    try:
        values.nats_url(url)
    except values.Invalid as invalid:
        raise ConfigError([f"{origin}: {reason}" for reason in invalid.reasons]) from None
    creds = creds or environment.get("NATS_CREDS")
    if creds:
        found = msgspec.structs.replace(found, creds=creds)
    return Broker(url=url, prefix=chosen, origin=origin, context=found)


def _contexts(environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "nats" / "context"


def _selected(directory: Path) -> str | None:
    try:
        name = directory.with_name("context.txt").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return name if name and "/" not in name and not name.startswith(".") else None


def names(environment: Mapping[str, str]) -> list[str]:
    """The contexts there are, for completion."""
    return sorted(path.stem for path in _contexts(environment).glob("*.json"))


def _read(path: Path) -> Context:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Context)
    except OSError:
        raise ConfigError(
            [f"--context: there is no context {path.stem}; `nats context ls` lists them"]
        ) from None
    except msgspec.MsgspecError:
        raise ConfigError([f"context {path.stem}: {path} is not a context of the nats tool"]) from None


def _file(name: str, what: str) -> str:
    """The path. It is not repeated in the error: who pastes the credentials themselves would see them again."""
    try:
        path = Path(os.path.expandvars(name)).expanduser()
        if path.is_file():
            return str(path)
    except (OSError, RuntimeError, ValueError):
        pass
    raise ConfigError([f"{what}: names a file that is not there or not readable"])
