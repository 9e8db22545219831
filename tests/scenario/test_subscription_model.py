"""Subscriptions under 10⁵ random steps, compared with a model of their requirements.

The steps: attach, detach, close, steal, look up, unsubscribe, end of session, close and loss of
connections, time. Each answer is the model's, and so is the broker's state after it. At the end,
when all clients have disconnected and unsubscribed, the broker holds nothing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import pytest

from broker.amqp import connection
from broker.amqp.performatives import RECEIVER, Attach, Close, Detach
from broker.amqp.performatives import End as EndSession
from broker.amqp.terminus import Source, Target
from broker.routing.timer_queue import NOTHING
from broker.routing.topics.subscription import Subscription
from tests.scenario.subscription_model import EXPIRES_AT, End, Key, Model, Wish
from tests.support.broker import Broker
from tests.support.routing import new_message

STEPS: Final = 8_000 if Path(str(connection.__file__)).suffix == ".py" else 100_000
SEEDS: Final = range(4)

CONTAINERS: Final = ("a", "b")
NAMES: Final = ("n", "n|2", "m", "m|global")
ADDRESSES: Final = ("t", "t", "t", "u")
SESSIONS: Final = (0, 1)
OUTCOMES: Final = {
    *("attach ", "attach amqp:resource-locked", "stolen", "expired"),
    *("lookup ", "lookup amqp:resource-locked", "lookup amqp:not-found"),
    *("close ", "close amqp:resource-locked", "detach "),
}
"""Results that must occur during the steps; otherwise the test proves less than it claims."""


class Connection:
    """A client, with the link of each of its handles by channel."""

    def __init__(self, broker: Broker, number: int, container: str) -> None:
        self.client = broker.connect(container)
        self.number = number
        self.container = container
        self.handles: dict[int, dict[int, Key]] = {channel: {} for channel in SESSIONS}
        for channel in SESSIONS:
            self.client.begin(channel)

    def stolen(self) -> list[Key]:
        """Return the links that the broker has detached as stolen, and detach each."""
        found = []
        for frame in self.client.frames():
            assert isinstance(frame.body, Detach)
            assert frame.body.error is not None
            assert frame.body.error.condition == "amqp:link:stolen"
            found.append(self.handles[frame.channel].pop(int(frame.body.handle)))
            self.client.send(Detach(handle=frame.body.handle, closed=True), channel=frame.channel)
        return found


class World:
    """The broker, the model, and the random choice of the next step."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.broker = Broker()
        self.model = Model(now=int(self.broker.clock.now_ms()))
        self.seen: Counter[str] = Counter()
        self.connected = 0
        self.connections = [self.connect(container) for container in ("a", "a", "b")]

    def connect(self, container: str) -> Connection:
        self.connected += 1
        return Connection(self.broker, self.connected, container)

    def step(self) -> None:
        at = self.draw.randrange(len(self.connections))
        here = self.connections[at]
        chance = self.draw.random()
        if chance < 0.5:
            self.attach(here, self.draw.choice(SESSIONS), self.draw.choice(NAMES), self.wish())
        elif chance < 0.83:
            self.detach(here)
        elif chance < 0.87:
            self.end_session(here, self.draw.choice(SESSIONS))
        elif chance < 0.9:
            self.disconnect(here)
            self.connections[at] = self.connect(self.draw.choice(CONTAINERS))
        elif chance < 0.95:
            self.publish(self.draw.choice(ADDRESSES))
        else:
            self.advance(self.draw.choice((1, 999, 1000, 2500)))

    def wish(self) -> Wish:
        draw = self.draw
        looks_up = draw.random() < 0.25
        return Wish(
            shared=draw.random() < 0.5,
            is_global=draw.random() < 0.3,
            durable=draw.random() < 0.5 and not looks_up,
            address=None if looks_up else draw.choice(ADDRESSES),
            policy=draw.choice(list(EXPIRES_AT)),
            timeout_s=draw.choice((0, 0, 1, 2)),
        )

    def attach(self, here: Connection, channel: int, name: str, wish: Wish) -> None:
        """Attach; check the answer and the detach of a stolen link, if any, against the model."""
        key = (here.container, name)
        handles = here.handles[channel]
        handle = next(each for each in range(99) if each not in handles)
        expected, steals = self.model.attach(key, wish, (here.number, channel))
        here.client.send(attach_of(name, handle, wish), channel=channel)
        condition = self.answer(here, channel, handle)
        stolen = [key for each in self.connections for key in each.stolen()]
        assert (condition, stolen) == (expected, [key] if steals else []), (key, wish)
        if not condition:
            handles[handle] = key
        self.seen[f"{'lookup' if wish.address is None else 'attach'} {condition}"] += 1
        self.seen["stolen"] += steals

    def answer(self, here: Connection, channel: int, handle: int) -> str:
        """Return the condition with which the attach is refused, or ""; put other frames back."""
        frames = here.client.frames()
        (answer,) = (each.body for each in frames if isinstance(each.body, Attach))
        rest = [each for each in frames if each.body is not answer]
        condition = ""
        if answer.source is None:
            refusal = rest.pop().body
            assert isinstance(refusal, Detach)
            assert refusal.error is not None
            condition = refusal.error.condition
            here.client.send(Detach(handle=handle, closed=True), channel=channel)
        here.client.put_back(rest)
        return condition

    def detach(self, here: Connection) -> None:
        held = [(channel, each) for channel in SESSIONS for each in here.handles[channel]]
        if not held:
            return
        channel, handle = self.draw.choice(held)
        self.let_go(here, channel, handle, closed=self.draw.random() < 0.5)

    def let_go(self, here: Connection, channel: int, handle: int, *, closed: bool) -> None:
        key = here.handles[channel].pop(handle)
        expected = self.model.leave(key, End.CLOSED if closed else End.LINK)
        here.client.send(Detach(handle=handle, closed=closed), channel=channel)
        answer = here.client.expect_last(Detach)
        condition = answer.error.condition if answer.error else ""
        assert condition == expected, key
        self.seen[f"{'close' if closed else 'detach'} {condition}"] += 1

    def end_session(self, here: Connection, channel: int) -> None:
        self.model.session_ended((here.number, channel), End.SESSION)
        here.handles[channel].clear()
        here.client.send(EndSession(), channel=channel)
        here.client.expect_end()
        here.client.begin(channel)

    def disconnect(self, here: Connection) -> None:
        for channel in SESSIONS:
            self.model.session_ended((here.number, channel), End.CONNECTION)
        if self.draw.random() < 0.5:
            here.client.send(Close())
            here.client.expect_last(Close)
        here.client.hang_up()

    def publish(self, address: str) -> None:
        self.model.publish(address)
        topic = self.broker.router.topics.get(address)
        if topic is not None:
            topic.put(new_message(), self.broker.journal.batch)
            self.broker.container.run_round()

    def advance(self, milliseconds: int) -> None:
        before = len(self.model.subscriptions)
        self.model.advance(milliseconds)
        self.broker.advance(milliseconds)
        self.seen["expired"] += before - len(self.model.subscriptions)

    # -- comparison

    def compare(self) -> None:
        """Check that the broker holds exactly what the model holds."""
        router = self.broker.router
        there = self.model.subscriptions.items()
        named = {name: each for name, each in there if not each.is_private()}
        private = {name: each for name, each in there if each.is_private()}
        real = router.subscriptions
        assert {name: facts_of(each) for name, each in real.named.items()} == {
            name: (each.wish.shared, each.wish.address, len(each.consumers), each.backlog)
            for name, each in named.items()
        }
        unnamed = [facts_of(each) for each in real.of.values() if each.identity is None]
        assert sorted(unnamed) == sorted(
            (False, each.wish.address, len(each.consumers), each.backlog)
            for each in private.values()
        )
        lonely = [each for each in self.model.subscriptions.values() if not each.consumers]
        kept = [(each.name[0] or "", each.name[1]) for each in lonely if each.is_private()]
        assert real.kept.count() == len(kept)
        assert all(real.kept.find(key) is not None for key in kept)
        assert router.expiries.waiting() == sum(each.wish.policy != "never" for each in lonely)
        assert router.bindings == len(self.model.subscriptions)
        assert self.broker.container.link_count() == len(self.model.links)

    async def compare_stored(self) -> None:
        stored = await self.broker.store.subscriptions()
        assert {(each.container_id, each.name, True) for each in stored} == {
            name
            for name, each in self.model.subscriptions.items()
            if each.wish.durable and not each.is_private()
        }

    # -- the end of everything

    def finish(self) -> None:
        """Disconnect all clients; then resume each remaining subscription once, and close it."""
        for here in self.connections:
            self.disconnect(here)
        self.connections.clear()
        self.advance(60_000)
        for each in list(self.model.subscriptions.values()):
            container, name = each.name[:2]
            here = self.connect(container or "a")
            self.connections.append(here)
            self.attach(here, 0, name, each.wish)
            self.let_go(here, 0, 0, closed=True)
            self.disconnect(here)
            self.connections.clear()
            self.compare()
        self.advance(600_000)


def attach_of(name: str, handle: int, wish: Wish) -> Attach:
    words = [*(["shared"] if wish.shared else []), *(["global"] if wish.is_global else [])]
    source = None
    if wish.address is not None:
        source = Source(
            address=wish.address,
            durable=2 if wish.durable else 0,
            expiry_policy=wish.policy,
            timeout=wish.timeout_s,
            capabilities=["topic", *words],
        )
    return Attach(
        name=name,
        handle=handle,
        role=RECEIVER,
        source=source,
        target=Target(),
        desired_capabilities=words,
    )


def facts_of(each: Subscription) -> tuple[bool, str, int, int]:
    queue = each.queue
    return (
        each.is_shared,
        each.spec.address.text,
        len(queue.consumers.attached),
        int(queue.backlogs.waiting),
    )


@pytest.mark.requirement(
    *(f"SUB-{number:02}" for number in (*range(1, 13), *range(21, 27), *range(30, 39), 40))
)
@pytest.mark.parametrize("seed", SEEDS)
async def test_subscriptions_are_what_the_model_says(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS // len(SEEDS)):
        world.step()
        world.compare()
    await world.compare_stored()
    assert world.seen.keys() >= OUTCOMES
    world.finish()
    world.compare()
    assert world.model.subscriptions == {}
    await world.compare_stored()
    router = world.broker.router
    assert (world.broker.container.peer_count(), router.expiries.deadlines()) == (0, 0)
    assert (router.timer_queue.next_deadline_ms(), world.broker.watcher.errors) == (NOTHING, [])
