"""Links of the clients of a simulated run: attach, steal and detach, with random properties."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter

from broker.amqp.descriptors import NO_LOCAL_FILTER, SELECTOR_FILTER
from broker.amqp.encode import put_value
from broker.amqp.outcomes import ACCEPTED, RELEASED, Modified, Received, Rejected
from broker.amqp.performatives import (
    RCV_FIRST,
    RCV_SECOND,
    RECEIVER,
    SENDER,
    SND_MIXED,
    SND_SETTLED,
    Attach,
)
from broker.amqp.terminus import (
    CONNECTION_CLOSE,
    COPY,
    LINK_DETACH,
    NEVER,
    NOT_DURABLE,
    SESSION_END,
    UNSETTLED_STATE,
    Coordinator,
    Source,
    SourceFilter,
    Target,
)
from broker.amqp.types import Described, ULong
from tests.conformance.resuming import unsettled_map
from tests.scenario.simulation_client import ClientLink, ClientSession
from tests.scenario.simulation_records import SELECTORS, Wish
from tests.scenario.simulation_run import WRAP, Run

QUEUES: Final = (
    "q",
    "q",
    "other",
    "small",
    "narrow",
    "mortal",
    "hopeless",
    "patient",
    "slow",
    "DLQ",
    "EXP",
)
TOPICS: Final = ("t", "t", "news")
NAMES: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight")
SHARED_NAMES: Final = ("one", "one", "one|2", "one|global", "two")
FAILED: Final = Modified(delivery_failed=True)
PARTLY: Final = Received(section_number=0, section_offset=0)
ELSEWHERE: Final = Modified(undeliverable_here=True)
POLICIES: Final = (LINK_DETACH, LINK_DETACH, SESSION_END, CONNECTION_CLOSE, NEVER)
LASTING: Final = (LINK_DETACH, SESSION_END, CONNECTION_CLOSE, CONNECTION_CLOSE, NEVER)
STATES: Final = (ACCEPTED, RELEASED, Rejected(), FAILED, ELSEWHERE, PARTLY)
DEFAULTS: Final = (None, None, ACCEPTED, RELEASED, Rejected(), FAILED, ELSEWHERE)


def address_for(run: Run, kind: str) -> str:
    """Return an address of a configured, dead-letter, expiry or temporary node, at random."""
    address = run.temporary(kind) if run.draw.random() < 0.3 else None
    if address is None and kind == "queue" and run.draw.random() < 0.1:
        address = run.draw.choice(("DLQ", "EXP"))
    return address or run.draw.choice(run.queues if kind == "queue" else run.topics)


def _new_link(run: Run, session: ClientSession, *, sends: bool) -> ClientLink | None:
    """Return a new link on the first free handle, not attached yet; None if the session has 5."""
    draw = run.draw
    handle = next(each for each in range(100) if each not in session.links)
    if len(session.links) >= 5:
        return None
    wanted = run.wanted
    link = ClientLink(
        session=session,
        name=draw.choice(NAMES) if wanted is None else wanted.name,
        handle=handle,
        sends=sends,
        address=None,
        kind="queue" if draw.random() < 0.6 else "topic",
        settles_second=draw.random() < 0.3,
        dynamic=draw.random() < 0.15,
    )
    if not sends and not link.dynamic:
        _give_words(run, link)
    if wanted is not None and draw.random() < 0.9:
        link.dynamic = wanted.dynamic
        link.kind, link.words, link.filters = wanted.kind, wanted.words, wanted.filters
    session.links[handle] = link
    return link


def _give_words(run: Run, link: ClientLink) -> None:
    """Choose the subscription capabilities, for a topic, and the filters of a receiver."""
    draw = run.draw
    if link.kind == "topic":
        chances = {"shared": 0.5, "global": 0.3, "durable": 0.5}
        link.words = tuple(word for word, chance in chances.items() if draw.random() < chance)
        if link.words and run.wanted is None:
            link.name = draw.choice(SHARED_NAMES)
    if draw.random() < (0.1 if link.words else 0.3):
        wish = Wish(draw.choice(list(SELECTORS)), draw.choice(("", "mine")))
        link.filters = filters_for(wish)


def filters_for(wish: Wish) -> list[SourceFilter]:
    """Return the source filters by which a client asks for `wish`."""
    filters = []
    if wish.selector:
        filters.append(stated("selector", SELECTOR_FILTER, wish.selector))
    if wish.excluded:
        filters.append(stated("no-local", NO_LOCAL_FILTER, []))
    return filters


def _policy(run: Run, link: ClientLink) -> str:
    """Return an expiry-policy: mostly the one that JMS clients use."""
    jms = NEVER if "durable" in link.words else LINK_DETACH
    if run.unsettled and run.draw.random() < 0.8:
        return CONNECTION_CLOSE
    policies, chance = (LASTING, 0.8) if run.world.setting.resume_max_s else (POLICIES, 0.4)
    return run.draw.choice(policies) if run.draw.random() < chance else jms


def _temporary(link: ClientLink) -> list[str]:
    """Return the capability of a temporary destination of JMS, if the link asks for one."""
    return [f"temporary-{link.kind}"] if link.dynamic else []


def stated(key: str, descriptor: int, value: object) -> SourceFilter:
    """Return a source filter as a client sends it."""
    out = BytesWriter()
    put_value(out, Described(ULong(descriptor), value))
    return SourceFilter(key=key, descriptor=descriptor, value=value, encoded=out.getvalue())


def attach_sender(run: Run, who: int) -> None:
    """Attach a link with a random target: a node, the relay or a dynamic node."""
    session, draw = run.session(who), run.draw
    link = None if session is None else _new_link(run, session, sends=True)
    if session is None or link is None:
        return
    is_relay = draw.random() < 0.2 and not link.dynamic
    if not link.dynamic and not is_relay:
        link.address = address_for(run, link.kind)
        if link.address == "EXP":
            link.address = "q"
    link.delivery_count = draw.choice((0, WRAP))
    session.put(
        Attach(
            name=link.name,
            handle=link.handle,
            role=SENDER,
            rcv_settle_mode=RCV_SECOND if link.settles_second else RCV_FIRST,
            source=Source(address="client"),
            target=Target(
                address=link.address,
                dynamic=link.dynamic,
                expiry_policy=draw.choice(POLICIES) if link.dynamic else SESSION_END,
                capabilities=[] if is_relay else [link.kind, *_temporary(link)],
            ),
            initial_delivery_count=link.delivery_count,
        )
    )


def attach_receiver(run: Run, who: int) -> None:
    """Attach a link with a random source, and mostly grant credit to it."""
    session, draw = run.session(who), run.draw
    link = None if session is None else _new_link(run, session, sends=False)
    if session is None or link is None:
        return
    wanted = run.wanted
    if link.dynamic:
        link.words = ()
    elif wanted is not None and wanted.address and wanted.kind == link.kind and draw.random() < 0.9:
        link.address = wanted.address
    else:
        link.address = address_for(run, link.kind)
    returns = bool(run.unsettled)
    chance = 0.03 if returns else 0.15
    browses = draw.random() < chance and link.kind == "queue" and link.address != "EXP"
    sends_settled = draw.random() < chance
    link.answer = draw.choice((None, None, None, None, ACCEPTED, ACCEPTED, RELEASED, FAILED))
    link.settles_late = run.world.setting.resume_max_s > 0
    # this address has no limit of attempts: the receiver would get the message for ever
    if link.answer is FAILED and link.address == "patient":
        link.answer = None
    policy = _policy(run, link)
    unsettled = run.unsettled
    if unsettled is None and link.settles_late and draw.random() < 0.3:
        unsettled = {}
    link.listed = dict(unsettled or {})
    session.put(
        Attach(
            name=link.name,
            handle=link.handle,
            role=RECEIVER,
            unsettled=None if unsettled is None else unsettled_map(unsettled),
            incomplete_unsettled=bool(unsettled) and draw.random() < 0.1,
            snd_settle_mode=SND_SETTLED if sends_settled else SND_MIXED,
            rcv_settle_mode=RCV_SECOND if link.settles_second else RCV_FIRST,
            source=Source(
                address=link.address,
                dynamic=link.dynamic,
                expiry_policy=policy,
                timeout=draw.choice((0, 3) if returns else (0, 0, 1, 3)) if not link.dynamic else 0,
                durable=UNSETTLED_STATE if "durable" in link.words else NOT_DURABLE,
                capabilities=[
                    link.kind,
                    *_temporary(link),
                    *[each for each in link.words if each != "durable"],
                ],
                filter=link.filters,
                distribution_mode=COPY if browses else None,
                default_outcome=draw.choice(DEFAULTS),
            ),
            target=Target(address="client"),
        )
    )
    if draw.random() < 0.7:
        link.grant(draw.choice((1, 5, 100)), drain=draw.random() < 0.1)


def sender(run: Run, who: int) -> ClientLink | None:
    """Return a link on which client `who` can send, attached if it has none; None if it cannot."""
    session = run.session(who)
    if session is None:
        return None
    if not session.senders():
        attach_sender(run, who)
        run.let_answer(session.client)
    senders = session.senders()
    return run.draw.choice(senders) if senders else None


def receiver(run: Run, who: int) -> ClientLink | None:
    """Return a link for client `who` to receive on, attached if it has none; None if it cannot."""
    session = run.session(who)
    if session is None:
        return None
    if not session.receivers():
        attach_receiver(run, who)
        run.let_answer(session.client)
    receivers = session.receivers()
    return run.draw.choice(receivers) if receivers else None


def grant(run: Run, who: int) -> None:
    """Set the credit of a receiver of client `who`, perhaps with drain or echo."""
    link, draw = receiver(run, who), run.draw
    if link is not None:
        drain, echo = draw.random() < 0.2, draw.random() < 0.1
        link.grant(draw.choice((0, 1, 2, 5, 50)), drain=drain, echo=echo)


def detach(run: Run, who: int) -> None:
    """Detach or close a link of client `who`: a random one, or one with unsettled deliveries."""
    session = run.session(who)
    links = [] if session is None else [each for each in session.links.values() if each.is_live()]
    if session is None or not links:
        return
    link, closed = run.draw.choice(links), run.draw.random() < 0.5
    holding = [each for each in set(session.received.values()) if each.is_live()]
    if holding and run.draw.random() < 0.5:
        link, closed = min(holding, key=lambda each: each.handle), False
    if not closed and session.unsettled_of(link):
        run.former[session.client.container_id] = link
    link.detach(closed=closed)
    late = [number for number, each in session.received.items() if each is link]
    if late:
        number = run.draw.choice(late)
        session.settle(number, number, run.draw.choice((ACCEPTED, RELEASED, FAILED)), settled=True)


def come_back(run: Run, who: int) -> None:
    """Attach a receiver again that its container has lost, or detached without closing it.

    If there is none, detach one with unsettled deliveries first.
    """
    session = run.session(who)
    if session is None:
        return
    if session.client.container_id not in run.former and run.has_received(session):
        link = next(iter(session.received.values()))
        run.former[session.client.container_id] = link
        link.detach(closed=False)
        run.let_answer(session.client)
    run.wanted = former = run.former.pop(session.client.container_id, None)
    if former is not None and run.draw.random() < 0.9:
        _list_unsettled(run, former)
    attach_receiver(run, who)
    run.wanted = run.unsettled = None


def _list_unsettled(run: Run, former: ClientLink) -> None:
    """Have the next attach list the unsettled deliveries of `former`, perhaps with outcomes."""
    run.unsettled = former.session.unsettled_of(former)
    former.session.forget(former)
    former.listed = {}
    for tag in run.unsettled:
        if run.draw.random() < 0.3:
            run.unsettled[tag] = run.draw.choice(STATES)


def steal(run: Run, who: int) -> None:
    """Attach by a link name that another session of the same container uses, at any address."""
    session = run.session(who)
    if session is None:
        return
    links = [
        link
        for client in run.everybody()
        if client.container_id == session.client.container_id
        for other in client.sessions.values()
        for link in other.links.values()
        if other is not session and link.is_live()
    ]
    if not links:
        return
    run.wanted = run.draw.choice(links)
    if run.wanted.settles_late and run.draw.random() < 0.7:
        _list_unsettled(run, run.wanted)
    (attach_sender if run.wanted.sends else attach_receiver)(run, who)
    run.wanted = run.unsettled = None


def coordinator(run: Run, who: int) -> ClientLink | None:
    """Return a link of client `who` to a coordinator, attached if it has none; None if none."""
    session = run.session(who)
    if session is None:
        return None
    if not session.coordinators():
        link = _new_link(run, session, sends=True)
        if link is None:
            return None
        link.coordinates, link.dynamic, link.settles_second = True, False, False
        session.put(
            Attach(
                name=link.name,
                handle=link.handle,
                role=SENDER,
                source=Source(address="client"),
                target=Coordinator(),
                initial_delivery_count=0,
            )
        )
        run.let_answer(session.client)
    coordinators = session.coordinators()
    return run.draw.choice(coordinators) if coordinators else None


def look_up(run: Run, who: int) -> None:
    """Look up a durable subscription, and mostly unsubscribe from it if it is found."""
    session, draw = run.session(who), run.draw
    link = None if session is None else _new_link(run, session, sends=False)
    if session is None or link is None:
        return
    link.looks_up, link.dynamic = True, False
    link.name = draw.choice(SHARED_NAMES)
    words = [word for word in ("shared", "global") if draw.random() < 0.4]
    session.put(
        Attach(
            name=link.name,
            handle=link.handle,
            role=RECEIVER,
            target=Target(),
            desired_capabilities=words,
        )
    )
    run.let_answer(session.client)
    if draw.random() < 0.7 and link.is_live():
        link.detach(closed=True)
