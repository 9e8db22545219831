"""The settings of shards: `[[shard]]`.

A shard is a broker process of its own, with its own names, store and ports. All other settings are
shared by all shards; here is what two processes cannot share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from broker.ha_settings import NAME, Advertised, HaSettings
from broker.listener_settings import FIRST, ListenerSettings
from broker.setting_types import MEMORY, SQLITE, Port, StoreUrl

SUPERVISED: Final = "JMS_BROKER_SUPERVISED"
"""Variable of the process of a shard that stops when its standard input ends: the supervisor, which
has the other end of it, is gone then."""

_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252})")


def _host(value: str) -> str:
    """Return a name of a host in lower case. Raise ValueError for other text."""
    if not _HOST.fullmatch(value):
        raise ValueError("Input should be the name of a host such as orders.example.com")
    return value.lower()


class ShardSettings(BaseModel):
    """One shard.

    `hosts` are the names under which clients know it: another shard sends a client there that
    asks for one of them. `port` is that of the first listener, `listener_ports` has those of each
    `[[listener]]` by its name. `advertise` takes the place of `ha.advertise`, and `prefer` that of
    `ha.prefer` if it is set.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=NAME)]
    hosts: tuple[Annotated[str, AfterValidator(_host)], ...] = ()
    port: Port
    store: StoreUrl
    http_port: Port | None = None
    listener_ports: Mapping[str, Port] = Field(default_factory=dict)
    advertise: Advertised = Field(default_factory=dict)
    prefer: bool | None = None

    def ports(self) -> dict[str, int]:
        """Return the port of each listener by its name."""
        return {FIRST: self.port, **self.listener_ports}

    def listeners(self, shared: Iterable[ListenerSettings]) -> tuple[ListenerSettings, ...]:
        """Return the listeners `shared` by all shards with the ports of this one."""
        return tuple(
            each.model_copy(update={"port": self.listener_ports[each.name]}) for each in shared
        )

    def of_group(self, shared: HaSettings) -> HaSettings:
        """Return the settings of the shard's group; `shared` are those of all shards."""
        prefer = shared.prefer if self.prefer is None else self.prefer
        return shared.model_copy(update={"advertise": self.advertise, "prefer": prefer})


def refuse_collisions(
    shards: Sequence[ShardSettings], listeners: Sequence[ListenerSettings], ha: HaSettings
) -> None:
    """Raise ValueError if one of the shards could not run beside the others.

    `listeners` and `ha` are what all of them share.
    """
    named: dict[str, list[str]] = {
        "name": [each.name for each in shards],
        "host": [host for each in shards for host in each.hosts],
        "store": [_place(each.store) for each in shards if each.store != MEMORY],
        "port": [str(port) for each in shards for port in _all_ports(each)],
    }
    for what, values in named.items():
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise ValueError(f"two [[shard]] have the {what} {twice[0]}: change one of them")
    for each in shards:
        _refuse_listeners(each, [listener.name for listener in listeners])
    if shards and ha.enabled and ha.advertise:
        raise ValueError(
            "ha.advertise is set, and there is a [[shard]]: clients reach each shard elsewhere;"
            " set advertise of each [[shard]] in its place"
        )


def _refuse_listeners(shard: ShardSettings, names: Sequence[str]) -> None:
    """Raise ValueError unless `shard` has a port for exactly the listeners of those names."""
    for name in names:
        if name not in shard.listener_ports:
            raise ValueError(
                f"[[shard]] {shard.name!r} has no port for the listener {name!r}: set"
                f" listener_ports = {{ {name} = PORT }}, with another port for each shard"
            )
    for name in shard.listener_ports:
        if name not in names:
            raise ValueError(
                f"[[shard]] {shard.name!r} has a port for the listener {name!r} in listener_ports,"
                " and there is no [[listener]] of that name"
            )


def _all_ports(shard: ShardSettings) -> Iterator[int]:
    yield from shard.ports().values()
    if shard.http_port is not None:
        yield shard.http_port


def _place(store: str) -> str:
    """Return what two names of one store have in common, without user and password."""
    if store.startswith(SQLITE):
        return str(Path(store.removeprefix(SQLITE)).resolve())
    return re.sub("//.*@", "//", store)
