"""The server's side of a SASL exchange (core 5.3): reads credentials and does not verify them."""

from typing import Final, final

from broker.amqp.errors import DECODE_ERROR, ConnectionFault

ANONYMOUS: Final = "ANONYMOUS"
PLAIN: Final = "PLAIN"
EXTERNAL: Final = "EXTERNAL"


@final
class PlainCredentials:
    """The content of a PLAIN response (RFC 4616)."""

    def __init__(self, authorization: str, user: str, password: str) -> None:
        self.authorization: Final = authorization
        self.user: Final = user
        self.password: Final = password


def plain_credentials(response: bytes) -> PlainCredentials:
    """Parse a PLAIN response: authzid NUL authcid NUL passwd, all UTF-8.

    Raise ConnectionFault(decode-error) for anything else, an empty user or password included.
    """
    authorization, user, password = _plain_parts(response)
    if not user or not password:
        raise ConnectionFault(DECODE_ERROR, "a PLAIN response names a user and a password")
    return PlainCredentials(authorization, user, password)


def claimed_name(response: bytes) -> str:
    """Return the user that a PLAIN response names, if no password is required.

    Raise ConnectionFault(decode-error) unless it has three parts of UTF-8; each may be empty.
    """
    return _plain_parts(response)[1]


def _plain_parts(response: bytes) -> list[str]:
    parts = response.split(b"\0")
    if len(parts) != 3:
        raise ConnectionFault(DECODE_ERROR, "a PLAIN response has three parts")
    try:
        return [part.decode() for part in parts]
    except UnicodeDecodeError:
        raise ConnectionFault(DECODE_ERROR, "a PLAIN response is UTF-8") from None
