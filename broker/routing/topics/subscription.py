"""Subscriptions: which one an attach means, and when the attach is refused.

`row_of` has the twelve rows of SUB-01 to SUB-12. `judge` has the rules on sharing
and changing a subscription: it takes traits and returns a verdict.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.terminus import LINK_DETACH, NOT_DURABLE
from broker.routing.addresses import pattern
from broker.routing.addresses.address import Address
from broker.routing.addresses.identity import KEY_BYTES_MAX, SubscriptionIdentity, fits_a_key
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.errors import InvalidAddress
from broker.routing.topics.lifetime import Ending, Expiring, Expiry, ExpiryPolicy
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.amqp.terminus import SourceFilter
    from broker.routing.queues.queue import Queue
    from broker.routing.topics.subscriptions import Subscriptions

BAR: Final = "|"
"""Ends the name of a shared subscription in a link name; the rest only distinguishes its links
(SUB-35)."""


class SubscriptionKind(Enum):
    """The use that a link makes of a subscription."""

    PRIVATE = "a new one that nobody else can name"
    SOLE = "a named one, alone"
    SHARED = "a named one, with others"
    LOOK_UP = "to learn of one, and perhaps to end it"


@final
class SubscriptionTraits:
    """Facts by which an attach selects its subscription. A queue's link states none of them."""

    def __init__(
        self,
        *,
        has_source: bool = True,
        is_shared: bool = False,
        is_global: bool = False,
        is_durable: bool = False,
    ) -> None:
        self.has_source: Final = has_source
        self.is_shared: Final = is_shared
        self.is_global: Final = is_global
        self.is_durable: Final = is_durable

    def differ_from(self, other: SubscriptionTraits) -> bool:
        """Return whether the two mean different subscriptions, as far as that shows without a name.

        A lookup, without a source, counts as durable: only durable ones are looked up.
        """
        return (
            self.is_shared != other.is_shared
            or self.is_global != other.is_global
            or (self.is_durable or not self.has_source)
            != (other.is_durable or not other.has_source)
        )


QUEUE_TRAITS: Final = SubscriptionTraits()
"""The traits of a link to anything but a subscription."""


@final
class AttachRule:
    """One row of the table: `number` 5 is SUB-05. `identity` is None for private subscriptions."""

    def __init__(
        self, number: int, use: SubscriptionKind, identity: SubscriptionIdentity | None
    ) -> None:
        self.number: Final = number
        self.use: Final = use
        self.identity: Final = identity


PRIVATE_ROW: Final = AttachRule(1, SubscriptionKind.PRIVATE, None)
"""The row of SUB-01."""


def row_of(traits: SubscriptionTraits, *, link_name: str, container_id: str) -> AttachRule:
    """Return the row for an attach. Raise InvalidAddress if no store can keep one of its names."""
    shared, is_global, durable = traits.is_shared, traits.is_global, traits.is_durable
    if not traits.has_source:
        # SUB-09 to SUB-12: lookups of durable subscriptions
        number = 9 + 2 * int(shared) + int(is_global)
        use = SubscriptionKind.LOOK_UP
        durable = True
    else:
        # SUB-01 to SUB-08
        number = 1 + 4 * int(shared) + 2 * int(is_global) + int(durable)
        use = (
            SubscriptionKind.SHARED
            if shared
            else SubscriptionKind.SOLE
            if durable
            else SubscriptionKind.PRIVATE
        )
    if use is SubscriptionKind.PRIVATE:
        return AttachRule(number, use, None)
    name = link_name.split(BAR, 1)[0] if shared else link_name
    _check(name, "the name of a subscription")
    if is_global:
        return AttachRule(number, use, (None, name, durable))
    _check(container_id, "the container-id of a named subscription")
    return AttachRule(number, use, (container_id, name, durable))


def _check(name: str, what: str) -> None:
    if fits_a_key(name):
        return
    if "\0" in name:
        raise InvalidAddress(f"{what} has no NUL: no database keeps it")
    size = len(name.encode(errors="replace"))
    raise InvalidAddress(f"{what} is Unicode of at most {KEY_BYTES_MAX} bytes, this one has {size}")


@final
class SubscriptionState:
    """State that an attach meets: the live link of its name, and the subscription it means.

    `link` has the traits of the live link of that container and name, None if there is none;
    `holds`: that link is one of the subscription's `consumers`. `wants_the_same`: the attach
    asks for the topic and filter that the subscription has.
    """

    def __init__(
        self,
        *,
        link: SubscriptionTraits | None = None,
        exists: bool = False,
        is_shared: bool = False,
        wants_the_same: bool = True,
        consumers: i64 = 0,
        holds: bool = False,
    ) -> None:
        self.link: Final = link
        self.exists: Final = exists
        self.is_shared: Final = is_shared
        self.wants_the_same: Final = wants_the_same
        self.consumers: Final[i64] = consumers
        self.holds: Final = holds


class AttachVerdict(Enum):
    """Result of judging an attach. From `LINK_IN_USE` on: REFUSALS, whose texts the peer gets."""

    BEGIN = "there is none: begin one"
    RESUME = "take part in the one there is"
    BEGIN_ANEW = "the one there is goes, with its backlog; begin one"
    FOUND = "answer the source of the one there is"
    MISSING = "there is none to be found"
    LINK_IN_USE = "a link of this name is attached"
    LINK_MEANS_ANOTHER = "a link of this name is attached for another subscription"
    SHARED_BY_OTHERS = "the subscription of this name is shared"
    NOT_SHARED = "the subscription of this name is not shared"
    CONSUMED_BY_ANOTHER = "another link consumes from this subscription"
    WANTED_OTHERWISE = "the subscription is in use with another topic or filter"


VERDICTS: Final = tuple(AttachVerdict)

REFUSALS: Final = VERDICTS[VERDICTS.index(AttachVerdict.LINK_IN_USE) :]
"""Verdicts that are answered with amqp:resource-locked, and change nothing.

A lookup that finds nothing, MISSING, is refused with amqp:not-found instead (SUB-40).
"""


def judge(asked: SubscriptionTraits, state: SubscriptionState) -> AttachVerdict:
    """Judge an attach by SUB-21, SUB-22, SUB-26 and SUB-38, in the order of SUB-40.

    A lookup (SUB-09 to SUB-12) has no source; `broker/links/lookup.py` answers it by the verdict.

    If the verdict is no refusal and a live link has the name, the attach steals that link; but a
    lookup steals none, and no link is stolen whose subscription would have to begin anew.
    """
    link = state.link
    if not asked.has_source:
        if not state.exists:
            return AttachVerdict.MISSING
        return AttachVerdict.FOUND if link is None else AttachVerdict.LINK_IN_USE
    if link is not None and asked.differ_from(link):
        return AttachVerdict.LINK_MEANS_ANOTHER
    if not state.exists:
        return AttachVerdict.BEGIN
    if state.is_shared != asked.is_shared:
        return AttachVerdict.SHARED_BY_OTHERS if state.is_shared else AttachVerdict.NOT_SHARED
    others = state.consumers - (1 if state.holds else 0)
    if not asked.is_shared and others > 0:
        return AttachVerdict.CONSUMED_BY_ANOTHER
    if state.wants_the_same:
        return AttachVerdict.RESUME
    return AttachVerdict.BEGIN_ANEW if state.consumers == 0 else AttachVerdict.WANTED_OTHERWISE


@final
class SubscriptionSpec:
    """The messages that a subscriber asks for: two that are alike take the same ones (SUB-21).

    `stated` are its filters in the client's own bytes, to be echoed in answers.
    """

    def __init__(
        self,
        address: Address,
        wanted: ConsumerFilter | None = None,
        stated: list[SourceFilter] | None = None,
    ) -> None:
        self.address: Final = address
        self.filter: Final = wanted
        self.stated: Final[list[SourceFilter]] = stated if stated is not None else []

    def is_like(self, other: SubscriptionSpec) -> bool:
        """Return whether both take the same messages."""
        if self.filter != other.filter:
            return False
        mine, others = self.address, other.address
        return mine.text == others.text or meaning_of(mine) == meaning_of(others)


def meaning_of(address: Address) -> tuple[str, list[str], list[str]]:
    """Return a subscriber's address as its class and the words of topic and key, normalised."""
    words = pattern.words_of(address.key) if address.key else [pattern.MANY]
    names = pattern.normal(pattern.words_of(address.words))
    return address.begins, names, pattern.normal(words)


@final
class SubscriptionExpiry:
    """Lifetime that a client asked for; that of the subscription's first attach counts (SUB-23)."""

    def __init__(
        self,
        *,
        durability: i64 = NOT_DURABLE,
        expiry_policy: str = LINK_DETACH,
        timeout_s: i64 = 0,
    ) -> None:
        self.durability: Final[i64] = durability
        self.expiry_policy: Final = expiry_policy
        self.timeout_s: Final[i64] = timeout_s


@final
class ConsumerDetach:
    """How and from where a consumer left; `key` is the container-id and name of its link."""

    def __init__(
        self, ending: Ending, *, connection: i64, session: i64, key: tuple[str, str]
    ) -> None:
        self.ending: Final = ending
        self.connection: Final[i64] = connection
        self.session: Final[i64] = session
        self.key: Final = key


@final
class Subscription(Expiring):
    """A subscription: its own queue of what is published to a topic from its beginning to its end.

    Its `expiry` counts once the last consumer has left. `kept_as` is then the container-id and
    link name that may have it back, if it has no name. `begun_on` is the page of the journal from
    which it is durable; -1 if it is from the store, or is never durable. `owner` is the user whose
    it is, empty for a client without a login.
    """

    def __init__(
        self,
        home: Subscriptions,
        *,
        identity: SubscriptionIdentity | None,
        is_shared: bool,
        spec: SubscriptionSpec,
        terms: SubscriptionExpiry,
        queue: Queue,
        grace_ms: i64 = 0,
        begun_on: i64 = -1,
        owner: str = "",
    ) -> None:
        self.identity: Final = identity
        self.owner = owner
        self.is_shared: Final = is_shared
        self.spec: Final = spec
        self.terms: Final = terms
        self.queue: Final = queue
        self.expiry: Final = Expiry(
            self, ExpiryPolicy(terms.expiry_policy, timeout_s=terms.timeout_s, grace_ms=grace_ms)
        )
        self.begun_on: Final[i64] = begun_on
        self.kept_as: tuple[str, str] | None = None
        self.is_global: Final = identity is not None and identity[0] is None
        self.is_over = False
        self._home: Final = home

    def expired(self, batch: Batch) -> None:
        self._home.end(self, batch)

    def is_durable(self) -> bool:
        identity = self.identity
        return identity is not None and identity[2]

    def ends_with_its_consumer(self) -> bool:
        """Return whether its messages are of use only to its one consumer, and end with it."""
        return not self.is_durable() and len(self.queue.consumers.attached) <= 1

    def name(self) -> str:
        """Return the name of the subscription, empty if it has none."""
        identity = self.identity
        return "" if identity is None else identity[1]
