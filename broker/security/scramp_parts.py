"""The parts of scramp that its documentation does not describe; its version is bounded for them.

Imported when SCRAM is used first, as scramp itself is.
"""

from __future__ import annotations

from typing import Final, final

from scramp import ScramException
from scramp.core import ScramServer as ScramServer
from scramp.utils import ServerError
from scramp.utils import saslprep as scramp_saslprep


@final
class HeaderAsSent:
    """The client's GS2 header with an authorization id, in place of scramp's, which has none."""

    def __init__(self, header: str) -> None:
        self._header: Final = header.encode()

    def make_cbind_input(self, channel_binding: None) -> bytes:  # noqa: ARG002 - scramp's signature
        """Return what the attribute `c` of the client's final message repeats."""
        return self._header


def expect_header(server: ScramServer, header: str) -> None:
    """Have `server` expect the GS2 `header` in the attribute `c` of the client's final message."""
    server.gs2_header = HeaderAsSent(header)


def is_wrong_proof(error: ScramException) -> bool:
    """Return whether `error` says that the client's proof does not fit the verifier."""
    return bool(error.server_error is ServerError.INVALID_PROOF)


def saslprep(text: str) -> str:
    """Return `text` as SASLprep prepares it (RFC 4013). Raise ScramException if it forbids that."""
    prepared: str = scramp_saslprep(text)
    return prepared
