"""The messages of the SASL mechanisms that carry a token: OAUTHBEARER (RFC 7628), and XOAUTH2.

XOAUTH2 is older and has no RFC; Qpid JMS knows it alone. A refused client gets a challenge with the
error as JSON, and answers it, before the outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from broker.oauth_settings import OAUTHBEARER, TOKEN_BYTES_MAX

MESSAGE_BYTES_MAX: Final = TOKEN_BYTES_MAX + 4 * 1024
"""Maximum bytes of a client's message: a token, a user's name, and the host of the client's URL."""

SEPARATOR: Final = "\x01"
AUTH: Final = "auth="
USER: Final = "user="
BEARER: Final = "bearer "

INVALID: Final = {
    True: b'{"status":"invalid_token"}',
    False: b'{"status":"400","schemes":"bearer"}',
}
"""The challenge to a client whose token is refused, of OAUTHBEARER (True) and XOAUTH2 (False)."""


class BearerError(ValueError):
    """The message is not one of its mechanism. The text says why, to the operator."""


@dataclass(frozen=True)
class BearerMessage:
    """The token of a client, and the user that it names, empty if it names none."""

    user: str
    token: str


def looks_like_token(password: str) -> bool:
    """Return whether a password is a signed JWT: three parts, the first of which is an object."""
    return password.startswith("eyJ") and password.count(".") == 2


def name_of(token: str) -> str:
    """Return the name by which failed logins of `token` are counted, if its client sends none.

    Each token has its own, so that a wrong one does not delay others of its source.
    """
    return f"token {sha256(token.encode()).hexdigest()[:16]}"


def error_challenge(mechanism: str) -> bytes:
    """Return the challenge to a client whose token is refused. It says nothing of the reason."""
    return INVALID[mechanism == OAUTHBEARER]


def read_bearer(mechanism: str, response: bytes) -> BearerMessage:
    """Return the content of a client's only message. BearerError if it is malformed."""
    if len(response) > MESSAGE_BYTES_MAX:
        raise BearerError(f"the message has more than {MESSAGE_BYTES_MAX} bytes")
    try:
        first, *pairs = response.decode().split(SEPARATOR)
    except UnicodeDecodeError:
        raise BearerError("the message is not UTF-8") from None
    if len(pairs) < 2 or pairs[-2:] != ["", ""]:
        raise BearerError("the message does not end with two separators")
    user = _authorization(first) if mechanism == OAUTHBEARER else _named_user(first)
    values = [each[len(AUTH) :] for each in pairs if each.startswith(AUTH)]
    if len(values) != 1 or not values[0].lower().startswith(BEARER):
        raise BearerError("the message has no single `auth=Bearer …`")
    return BearerMessage(user, values[0][len(BEARER) :].strip())


def _authorization(header: str) -> str:
    """Return the user of the header `n,a=USER,` of OAUTHBEARER (RFC 5801 4), empty for none."""
    parts = header.split(",")
    if len(parts) != 3 or parts[0] not in ("n", "y") or parts[2]:
        raise BearerError("the message begins with `n,,` or `n,a=USER,`")
    if not parts[1]:
        return ""
    if not parts[1].startswith("a=") or parts[1] == "a=":
        raise BearerError("the message names its user by `a=`")
    return parts[1][2:].replace("=2C", ",").replace("=3D", "=")


def _named_user(first: str) -> str:
    if not first.startswith(USER):
        raise BearerError("the message begins with `user=`")
    return first[len(USER) :]
