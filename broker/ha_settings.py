"""The settings of a group of brokers, one of which leads: `[ha]`."""

from __future__ import annotations

import re
import socket
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from broker.setting_types import UINT_MAX, Count, Number

NAME_MAX: Final = 40
"""Characters of a member's name, which is a part of the names of its sessions with PostgreSQL."""

Kind = Literal["amqp", "amqps", "ws", "wss"]

NAME: Final = f"^[A-Za-z0-9._-]{{1,{NAME_MAX}}}$"


def _host_name() -> str:
    """Return the machine's name, as far as it can be that of a member."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:NAME_MAX] or "broker"


def _address(value: str) -> str:
    """Raise ValueError unless `value` is HOST:PORT; an address of IPv6 is in brackets."""
    try:
        found = urlsplit(f"//{value}")
        is_whole = bool(found.hostname and found.port) and found.netloc == value
    except ValueError:
        is_whole = False
    if not is_whole or "@" in value:
        raise ValueError("Input should be HOST:PORT, at which clients reach this broker")
    return value


Advertised = dict[Kind, Annotated[str, AfterValidator(_address)]]
"""Host and port at which clients reach a broker, by the kind of listener."""


class HaSettings(BaseModel):
    """A group of brokers on one PostgreSQL. `name` is the member's, which no other member has.

    `advertise` has the host and port at which clients reach it, by the kind of listener.
    A leader is replaced when it has been silent for `silence_ms`. One that has lost the database
    answers no client any more, and drops its connections after `client_grace_ms`. A standby keeps
    the records of the stored messages in memory, in `warm_bytes` at most, to take over sooner.
    With `prefer` it takes over from another member once it has been ready for 60 s.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = False
    name: str = Field(default_factory=_host_name, pattern=NAME)
    advertise: Advertised = Field(default_factory=dict)
    silence_ms: Annotated[Number, Field(ge=1000, le=60_000)] = 3000
    client_grace_ms: Annotated[Number, Field(ge=0, le=UINT_MAX)] = 8000
    warm_bytes: Count = 200_000_000
    prefer: bool = False

    def addresses(self) -> dict[str, tuple[str, int]]:
        """Return host and port for clients by the kind of listener."""
        parts = {kind: urlsplit(f"//{value}") for kind, value in self.advertise.items()}
        return {kind: (each.hostname or "", each.port or 0) for kind, each in parts.items()}
