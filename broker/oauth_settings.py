"""The settings of `[oauth]`: whose tokens log in, and what is read from them.

`broker/security/tokens.py` checks tokens by them, `broker/net/token_keys.py` reads the keys.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from broker.setting_types import FilePath, Number

HTTPS: Final = "https://"

OAUTHBEARER: Final = "OAUTHBEARER"
XOAUTH2: Final = "XOAUTH2"
TOKEN_MECHANISMS: Final = (OAUTHBEARER, XOAUTH2)
"""The SASL mechanisms that are there for tokens alone (RFC 7628, and Google's older one)."""

RsaAlgorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]
CurveAlgorithm = Literal["ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
Algorithm = RsaAlgorithm | CurveAlgorithm
ALGORITHMS: Final[tuple[Algorithm, ...]] = (*get_args(RsaAlgorithm), *get_args(CurveAlgorithm))
"""The signatures by a private key that the issuer alone has. There is no `none`, and no HS256,
whose secret the broker would share."""

TOKEN_BYTES_MAX: Final = 16 * 1024
"""Maximum bytes of a token."""

SCOPE_PREFIX_MAX: Final = 255

Claim = Annotated[str, Field(min_length=1, max_length=255)]


def _jwks(value: str) -> str:
    """Raise ValueError unless `value` is an https URL, or may be the path of a file."""
    if value.startswith(HTTPS):
        _check_url(value)
    elif "://" in value or not value.strip():
        raise ValueError(
            "Input should be an https URL, or the path of a file: over http others could replace"
            " the keys"
        )
    return value


def _check_url(value: str) -> None:
    parts = urlsplit(value)
    _ = parts.port  # raises ValueError if it is not a port
    if not parts.hostname:
        raise ValueError("Input should be an https URL with the name of a host")
    if "@" in parts.netloc or parts.fragment:
        raise ValueError("Input should be an https URL without a user, a password and a fragment")
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("Input should be an https URL in ASCII, without spaces")


def _scope_prefix(value: str) -> str:
    """Raise ValueError unless `value` is empty, or may begin a scope (RFC 6749 3.3)."""
    if len(value) > SCOPE_PREFIX_MAX or not all("!" <= each <= "~" for each in value):
        raise ValueError(
            f"Input should be at most {SCOPE_PREFIX_MAX} printable characters of ASCII, without"
            " spaces; or empty, if scopes give no rights"
        )
    return value


class OauthSettings(BaseModel):
    """The table `oauth`. Claims are members of a token, by their names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: Annotated[str, Field(min_length=1, max_length=2048)]
    audience: Annotated[str, Field(min_length=1, max_length=2048)]
    jwks: Annotated[str, AfterValidator(_jwks)]
    jwks_ca: FilePath | None = None
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = ALGORITHMS
    user_claim: Annotated[tuple[Claim, ...], Field(min_length=1, max_length=8)] = (
        "preferred_username",
        "sub",
    )
    roles_claim: Claim = "roles"
    scope_prefix: Annotated[str, AfterValidator(_scope_prefix)] = "jms-broker"
    leeway_s: Annotated[Number, Field(ge=0, le=300)] = 30
    expired: Literal["forced", "kept"] = "forced"

    @model_validator(mode="after")
    def _authority_is_of_a_url(self) -> OauthSettings:
        if self.jwks_ca is not None and not self.is_remote():
            raise ValueError(
                "jwks_ca is set, but jwks is a file, for which no connection is made: remove it"
            )
        return self

    def is_remote(self) -> bool:
        """Return whether the keys are fetched from a URL, and not read from a file."""
        return self.jwks.startswith(HTTPS)
