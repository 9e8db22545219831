"""A model of subscriptions, as short as the requirements SUB-01 to SUB-40 allow.

It knows nothing of the broker's code. Links are known by container and name; subscriptions by
identity, and those without an identity by the link that may use them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

Key = tuple[str, str]
"""Container-id and link name."""

Name = tuple[str | None, str, bool] | Key
"""Scope, name and durability of a named subscription; the link of any other."""

LOCKED = "amqp:resource-locked"
NOT_FOUND = "amqp:not-found"


class End(IntEnum):
    """The event that ends a link; a higher value reaches further."""

    CLOSED = 0
    LINK = 1
    SESSION = 2
    CONNECTION = 3


EXPIRES_AT = {
    "link-detach": End.LINK,
    "session-end": End.SESSION,
    "connection-close": End.CONNECTION,
    "never": End.CONNECTION + 1,
}


@dataclass(frozen=True)
class Wish:
    """The properties that an attach asks for; a lookup has no address."""

    shared: bool
    is_global: bool
    durable: bool
    address: str | None
    policy: str = "link-detach"
    timeout_s: int = 0

    def facts(self) -> tuple[bool, bool, bool]:
        return self.shared, self.is_global, self.durable or self.address is None


@dataclass(eq=False)
class Subscription:
    """A subscription with its consumers and the number of its messages."""

    wish: Wish
    name: Name
    consumers: set[Key] = field(default_factory=set)
    anchor: tuple[int, int] = (-1, -1)
    "Connection and session of the last consumer, while the end of one of them is awaited."
    deadline: int | None = None
    backlog: int = 0

    def is_private(self) -> bool:
        return len(self.name) == 2


@dataclass(eq=False)
class Link:
    """An attached link, with the connection and session where it is."""

    wish: Wish
    place: tuple[int, int]
    name: Name


@dataclass
class Model:
    """All links and subscriptions at the time `now`, in ms."""

    now: int = 0
    links: dict[Key, Link] = field(default_factory=dict)
    subscriptions: dict[Name, Subscription] = field(default_factory=dict)

    def attach(self, key: Key, wish: Wish, place: tuple[int, int]) -> tuple[str, bool]:
        """Attach; return the condition of a refusal, or "", and whether an older link is stolen."""
        name, holder = self._name(key, wish), self.links.get(key)
        there = self.subscriptions.get(name)
        if wish.address is None:
            if there is None or holder is not None:
                return NOT_FOUND if there is None else LOCKED, False
            self.links[key] = Link(wish, place, name)
            return "", False
        if holder is not None and holder.wish.facts() != wish.facts():
            return LOCKED, False
        if there is not None:
            if there.wish.shared != wish.shared:
                return LOCKED, False
            if not wish.shared and there.consumers - {key}:
                return LOCKED, False
            if there.wish.address != wish.address:
                if there.consumers and name != key:
                    return LOCKED, False
                del self.subscriptions[name]
        joined = self.subscriptions.setdefault(name, Subscription(wish, name))
        joined.consumers.add(key)
        joined.anchor, joined.deadline = (-1, -1), None
        if name != key:
            self.subscriptions.pop(key, None)
        self.links[key] = Link(wish, place, name)
        return "", holder is not None

    def _name(self, key: Key, wish: Wish) -> Name:
        container, name = key
        if wish.address is not None and not wish.shared and not wish.durable:
            return key
        name = name.split("|")[0] if wish.shared else name
        return None if wish.is_global else container, name, wish.durable or wish.address is None

    def leave(self, key: Key, end: End) -> str:
        """End a link; return the condition with which the broker answers its detach, or ""."""
        link = self.links.pop(key)
        there = self.subscriptions.get(link.name)
        if link.wish.address is None:
            if end is not End.CLOSED or there is None:
                return ""
            if there.consumers:
                return LOCKED
            del self.subscriptions[link.name]
            return ""
        assert there is not None
        there.consumers.remove(key)
        if there.consumers:
            return LOCKED if end is End.CLOSED and there.wish.durable else ""
        there.anchor = link.place
        if end is End.CLOSED:
            del self.subscriptions[link.name]
        else:
            self._reached(there, end)
        return ""

    def _reached(self, there: Subscription, end: End) -> None:
        if end >= EXPIRES_AT[there.wish.policy]:
            there.anchor = (-1, -1)
            there.deadline = self.now + there.wish.timeout_s * 1000
            self.advance(0)

    def session_ended(self, place: tuple[int, int], end: End) -> None:
        """End the links of a session that ended by itself or with its connection (`end`)."""
        for key in [key for key, link in self.links.items() if link.place == place]:
            self.leave(key, end)
        for there in list(self.subscriptions.values()):
            if there.anchor == place:
                self._reached(there, end)

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds
        for name, there in list(self.subscriptions.items()):
            if there.deadline is not None and there.deadline <= self.now:
                del self.subscriptions[name]

    def publish(self, address: str) -> None:
        for there in self.subscriptions.values():
            there.backlog += there.wish.address == address
