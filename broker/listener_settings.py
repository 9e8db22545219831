"""The settings of a listener, one of the addresses at which the broker accepts connections."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from broker.oauth_settings import TOKEN_MECHANISMS
from broker.setting_types import Number
from broker.tls_settings import TlsSettings

AMQPS: Final = "amqps"
"""The kind of a listener that speaks TLS."""

WS: Final = "ws"
"""The kind of a listener whose clients send AMQP within WebSocket messages."""

WSS: Final = "wss"
"""The kind of a listener that speaks WebSocket within TLS."""

PORTS: Final[Mapping[str, int]] = {AMQPS: 5671, WS: 5673, WSS: 5674}
"""The port of a listener that names none, by its kind. That of amqp is the first listener's."""

FIRST: Final = "amqp"
"""The name of the listener that the settings `bind` and `port` describe."""

REQUIRE: Final = "require"
"""The value of `proxy_protocol` for a listener that only proxies reach."""

_PATH: Final = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s@?#]+")


def _path(value: str) -> str:
    """Raise ValueError for text that cannot be the path of a URL."""
    if not _PATH.fullmatch(value):
        raise ValueError("Input should be the path of a URL, such as / or /amqp")
    return value


def _origin(value: str) -> str:
    """Raise ValueError for text that no browser sends as an origin."""
    if not _ORIGIN.fullmatch(value) or value != value.lower():
        raise ValueError(
            "Input should be an origin as browsers send it, such as https://shop.example or"
            " http://localhost:8080: in lower case, without a path"
        )
    return value


def _network(value: object) -> object:
    """Return the network that a text is. Raise ValueError if it is none, or IPv4 as IPv6."""
    if not isinstance(value, str):
        return value
    try:
        network = ip_network(value)
    except ValueError as error:
        raise ValueError(
            f"Input should be an address or a network such as 10.0.0.0/8: {error}"
        ) from None
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise ValueError("Input should be the IPv4 network, without ::ffff:")
    return network


Origin = Annotated[str, AfterValidator(_origin)]
ProxyNetwork = Annotated[IPv4Network | IPv6Network, BeforeValidator(_network)]


Mechanism = Literal[
    "EXTERNAL",
    "SCRAM-SHA-512",
    "SCRAM-SHA-256",
    "OAUTHBEARER",
    "XOAUTH2",
    "PLAIN",
    "ANONYMOUS",
]


class ListenerSettings(BaseModel):
    """The settings of one listener."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
    kind: Literal["amqp", "amqps", "ws", "wss"] = "amqp"
    bind: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[Number, Field(ge=0, le=65535)]
    path: Annotated[str, AfterValidator(_path)] = "/"
    origins: tuple[Origin, ...] = ()
    proxy_protocol: Literal["no", "require"] = "no"
    proxy_from: tuple[ProxyNetwork, ...] = ()
    mechanisms: Annotated[tuple[Mechanism, ...], Field(min_length=1)] | None = None
    tls: TlsSettings | None = None

    @model_validator(mode="before")
    @classmethod
    def _port_is_that_of_the_kind(cls, given: object) -> object:
        """Fill in the port by the kind."""
        if isinstance(given, Mapping) and given.get("kind") in PORTS:
            return {"port": PORTS[given["kind"]], **given}
        return given

    @model_validator(mode="after")
    def _tls_fits_the_kind(self) -> ListenerSettings:
        if self.tls is not None and not self.is_encrypted:
            other = WSS if self.is_websocket else AMQPS
            raise ValueError(f"listener {self.name!r} has a table tls: set kind to {other!r}, too")
        return self

    @model_validator(mode="after")
    def _websocket_fits_the_kind(self) -> ListenerSettings:
        for key, is_set in (("path", self.path != "/"), ("origins", bool(self.origins))):
            if is_set and not self.is_websocket:
                raise ValueError(
                    f"listener {self.name!r} has {key}, which only WebSocket has: set kind to"
                    f" {WS!r} or {WSS!r}, or remove {key}"
                )
        return self

    @model_validator(mode="after")
    def _proxies_are_named(self) -> ListenerSettings:
        if self.is_proxied and not self.proxy_from:
            raise ValueError(
                f"listener {self.name!r} has proxy_protocol = {REQUIRE!r}: set proxy_from to the"
                " networks of the proxies, since any client could forge its address else"
            )
        if self.proxy_from and not self.is_proxied:
            raise ValueError(
                f"listener {self.name!r} has proxy_from: set proxy_protocol = {REQUIRE!r}, too,"
                " or remove proxy_from"
            )
        return self

    @property
    def is_encrypted(self) -> bool:
        """Whether the clients speak TLS."""
        return self.kind in (AMQPS, WSS)

    @property
    def is_websocket(self) -> bool:
        """Whether the clients send AMQP within WebSocket messages."""
        return self.kind in (WS, WSS)

    @property
    def is_proxied(self) -> bool:
        """Whether clients come through proxies, which state the clients' addresses."""
        return self.proxy_protocol == REQUIRE

    def needs_tokens(self) -> bool:
        """Return whether a mechanism of this listener needs the table oauth."""
        return any(each in TOKEN_MECHANISMS for each in self.mechanisms or ())

    def url(self, port: int) -> str:
        """Return the URL of this listener once it listens on `port`."""
        host = f"[{self.bind}]" if ":" in self.bind else self.bind
        path = self.path if self.path != "/" else ""
        return f"{self.kind}://{host}:{port}{path}"
