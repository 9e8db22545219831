"""The product and version of the broker under test, as its open says."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker.amqp.sasl_frames import SASL_AUTH

from .conversation import connected
from .logins import TryLaterError, login_of
from .verdict import Failed, NotApplicable, Options
from .words import in_words


@dataclass(frozen=True)
class BrokerIdentity:
    """A broker's address, and the properties and capabilities of its open (core 2.7.1).

    `product` and `version` are empty if the broker does not tell them, or lets nobody in.
    """

    place: str
    product: str = ""
    version: str = ""
    container_id: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    capabilities: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Product and version, or the address of a broker that tells no product."""
        return f"{self.product} {self.version}".strip() or self.place


def place_of(options: Options) -> str:
    """Return host and port for a report."""
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"{host}:{options.port}"


async def identity_of(options: Options) -> BrokerIdentity:
    """Open a connection; return what the broker says of itself. Raise OSError without a broker."""
    place = place_of(options)
    async with connected(options, address="identity", lines=[]) as peer:
        try:
            remote = await peer.open()
            await peer.close()
        except (Failed, NotApplicable, TryLaterError):
            # the cases on logins tell what is wrong
            return BrokerIdentity(place)
    properties = _texts(remote.properties)
    return BrokerIdentity(
        place,
        product=properties.get("product", ""),
        version=properties.get("version", ""),
        container_id=str(remote.container_id),
        properties=properties,
        capabilities=[str(each) for each in remote.offered_capabilities or []],
    )


async def refused_login(options: Options) -> str:
    """Return why the broker does not let the harness in; empty if it does, or for another reason.

    Raise OSError without a broker.
    """
    async with connected(options, address="identity", lines=[]) as peer:
        try:
            login = login_of(options, await peer.mechanisms())
            peer.send_sasl(login.init)
            outcome = await peer.expect_outcome(login)
        except NotApplicable as not_offered:
            return not_offered.reason
        except (Failed, TryLaterError):
            return ""  # the cases tell what is wrong
    who = f"the login of {options.user}" if options.user else f"a login by {login.init.mechanism}"
    return f"the broker refuses {who}" if outcome.code == SASL_AUTH else ""


def _texts(properties: dict[str, object] | None) -> dict[str, str]:
    """Return the properties of an open as texts; a symbol and a string are themselves."""
    return {
        name: each if isinstance(each, str) else in_words(each)
        for name, each in (properties or {}).items()
    }
