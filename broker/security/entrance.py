"""How a client reached the broker: the listener, and what is known of the client's end."""

from __future__ import annotations

from typing import Final, final

AMQP: Final = "amqp"
HTTP: Final = "http"


@final
class Entrance:
    """The listener that a client has connected to, and the client's end of that connection.

    `listener` is its name in the settings, `kind` its protocol. `host` and `port` are the client's;
    `port` is 0 if it is not known. `certificate_name` is the name in the client's verified
    certificate that stands for a user; empty if it showed none, or the listener asks for none. The
    certificate itself is not kept: nothing after the handshake reads it, and it has 1 to 2 KiB.
    """

    def __init__(
        self,
        *,
        listener: str,
        kind: str,
        host: str,
        port: int = 0,
        is_tls: bool = False,
        certificate_name: str = "",
    ) -> None:
        self.listener: Final = listener
        self.kind: Final = kind
        self.host: Final = host
        self.address: Final = f"{host}:{port}" if port else host
        self.is_tls: Final = is_tls
        self.certificate_name: Final = certificate_name
