"""Who is calling: the App by its signed JWT, an installation by a token this GitHub issued.

JWTs are checked as GitHub checks them (RS256, `iss`, `iat` not in the future, `exp` at most ten minutes
ahead). Installation tokens have the long form `ghs_<app id>_<JWT>` and live for an hour.
"""

from __future__ import annotations

import functools
import secrets
from dataclasses import dataclass, field

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from graft.simulator.errors import ApiError
from graft.simulator.state import AppRecord, Installation

TOKEN_LIFETIME = 3600
_UNDECODABLE = "A JSON web token could not be decoded"
_BAD_EXP = (
    "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the "
    "assertion expires"
)
_BAD_IAT = "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"


def generate_private_key() -> str:
    """A fresh RSA key in the PEM form that GitHub hands out (PKCS#1)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


@functools.cache
def shared_private_key() -> str:
    """One key for this process, for simulators that were given none: making one takes a while."""
    return generate_private_key()


@functools.lru_cache(maxsize=8)
def public_key(private_key: str) -> str:
    """The public half of a private key, as PEM. Raises `ValueError` for what is no private key.

    Remembered, because reading a private key means testing its primes.
    """
    key = serialization.load_pem_private_key(private_key.encode(), password=None)
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


@dataclass(kw_only=True, eq=False)
class Grant:
    """What a token was issued for. `repository_ids` is `None` for all of the installation's."""

    token: str
    installation: Installation
    permissions: dict[str, str]
    repository_ids: frozenset[int] | None
    expires_at: float
    revoked: bool = False


@dataclass(kw_only=True)
class Tokens:
    """The installation tokens that were issued."""

    grants: dict[str, Grant] = field(default_factory=dict)
    _key: str = field(default_factory=lambda: secrets.token_hex(32))

    def issue(
        self,
        app: AppRecord,
        installation: Installation,
        *,
        permissions: dict[str, str],
        repository_ids: frozenset[int] | None,
        now: float,
    ) -> Grant:
        claims = {
            "iss": "github.com",
            "sub": str(installation.id),
            "iat": int(now),
            "jti": secrets.token_hex(16),
        }
        token = f"ghs_{app.id}_{jwt.encode(claims, self._key, algorithm='HS256')}"
        grant = Grant(
            token=token,
            installation=installation,
            permissions=permissions,
            repository_ids=repository_ids,
            expires_at=int(now) + TOKEN_LIFETIME,
        )
        self.grants[token] = grant
        return grant

    def check(self, token: str, now: float) -> Grant:
        """The grant of a token that is good now; 401 for any other, 403 while suspended."""
        grant = self.grants.get(token)
        if grant is None or grant.revoked or grant.expires_at <= now or grant.installation.deleted:
            raise ApiError(401, "Bad credentials")
        if grant.installation.suspended_at is not None:
            raise ApiError(403, "This installation has been suspended")
        return grant

    def revoke(self, installation: Installation | None = None) -> None:
        """End every token, or those of one installation, before its time."""
        for grant in self.grants.values():
            if installation is None or grant.installation is installation:
                grant.revoked = True


def check_app_token(token: str, app: AppRecord, key: str, now: float) -> None:
    """Raise GitHub's answer for a JWT that it would not take from this App."""
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=["RS256"],
            options={"verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_aud": False},
        )
    except jwt.PyJWTError:
        raise ApiError(401, _UNDECODABLE) from None
    issued, expires = claims.get("iat"), claims.get("exp")
    if not isinstance(issued, int) or issued > now:
        raise ApiError(401, _BAD_IAT)
    if not isinstance(expires, int | float) or expires <= now:
        raise ApiError(401, _BAD_EXP)
    if expires > now + 600:
        raise ApiError(401, "'Expiration time' claim ('exp') is too far in the future")
    if str(claims.get("iss")) not in (str(app.id), app.client_id):
        raise ApiError(404, "Integration not found")
