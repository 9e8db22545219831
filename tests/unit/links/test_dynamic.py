"""Dynamic nodes: the answer to the terminus that creates one, its lifetime, and its resumption."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.amqp.performatives import Attach, Close, Detach, End, Flow
from broker.amqp.terminus import Source, Target
from broker.amqp.types import Described, ULong
from broker.links.dynamic import dynamic_properties, dynamic_terms
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.topics.dynamic import DeletePolicy
from tests.support.broker import Broker, Client
from tests.support.frames import Transfer, attach_receiver, attach_sender, message

ON_CLOSE, NO_LINKS, NO_MESSAGES, NEITHER = 0x2B, 0x2C, 0x2D, 0x2E

TERMS = [
    pytest.param("link-detach", 0, ("link-detach", 0), id="with the link"),
    pytest.param("link-detach", 30, ("link-detach", 30), id="a while after the link"),
    pytest.param("session-end", 30, ("session-end", 30), id="a while after the session"),
    pytest.param("connection-close", 0, ("connection-close", 0), id="with the connection"),
    pytest.param("connection-close", 30, ("connection-close", 0), id="not after the connection"),
    pytest.param("never", 30, ("connection-close", 0), id="for ever is as long as the connection"),
]


@pytest.mark.requirement("TMP-01", "TMP-03", "SUB-25")
@pytest.mark.parametrize(("policy", "timeout", "expected"), TERMS)
def test_a_terminus_gets(policy: str, timeout: int, expected: tuple[str, int]) -> None:
    terms = dynamic_terms(policy, timeout)
    assert (terms.policy, terms.timeout_s) == expected


@pytest.mark.requirement("TMP-02")
@pytest.mark.parametrize("policy", DeletePolicy, ids=lambda policy: policy.name)
def test_the_lifetime_policy_is_answered(policy: DeletePolicy) -> None:
    (answered,) = dynamic_properties(policy).values()
    assert isinstance(answered, Described)
    assert isinstance(answered.descriptor, ULong)
    assert answered.value == []
    assert answered.descriptor.value == ON_CLOSE + list(DeletePolicy).index(policy)


class Made:
    """A dynamic node, created by a link with handle 0 that sends or receives (`direction`)."""

    def __init__(
        self,
        broker: Broker,
        *,
        direction: str,
        lifetime: int | None = None,
        expiry_policy: str = "link-detach",
        timeout: int = 0,
    ) -> None:
        self.broker = broker
        self.client = broker.session("owner")
        self.direction = direction
        self.fields: dict[str, object] = {"expiry_policy": expiry_policy, "timeout": timeout}
        if lifetime is not None:
            self.fields["dynamic_node_properties"] = {
                "lifetime-policy": Described(ULong(lifetime), [])
            }
        self.answer = self.ask(dynamic=True)
        assert self.answer.address is not None
        self.address = self.answer.address

    def ask(self, handle: int = 0, **fields: object) -> Source | Target:
        """Attach the link that creates or resumes the node; return the terminus of the answer."""
        given = {**self.fields, **fields}
        if self.direction == "target":
            target = Target(**given)  # type: ignore[arg-type]
            asked = attach_sender(name="creator", handle=handle, target=target)
            answer = self.client.attach(asked).target
            self.client.expect(Flow)
            assert isinstance(answer, Target)
            return answer
        source = Source(**given)  # type: ignore[arg-type]
        answered = self.client.attach(attach_receiver(name="creator", handle=handle, source=source))
        assert answered.source is not None
        return answered.source

    def detach(self, *, closed: bool = True, handle: int = 0) -> None:
        self.client.send(Detach(handle=handle, closed=closed))
        assert self.client.expect(Detach).error is None

    def exists(self) -> bool:
        return self.broker.router.find_named(self.address, "") is not None

    def use(self, handle: int = 1) -> None:
        """Attach another link of the same client to the node."""
        self.client.attach_receiver(self.address, name=f"other-{handle}", handle=handle)

    def put(self, body: bytes = b"kept") -> None:
        """Send a message from another client, which disconnects at once."""
        other = self.broker.session("other")
        other.attach_sender(self.address)
        other.send(Transfer(settled=True, payload=message(body)))
        other.hang_up()


EITHER = pytest.mark.parametrize("direction", ["target", "source"])


@EITHER
@pytest.mark.requirement("TMP-01", "TMP-02")
def test_the_answer_tells_what_is_really_so(direction: str) -> None:
    made = Made(
        Broker(), direction=direction, lifetime=NO_LINKS, expiry_policy="never", timeout=5
    ).answer
    assert (made.dynamic, made.expiry_policy, made.timeout) == (True, "connection-close", 0)
    assert made.dynamic_node_properties == dynamic_properties(DeletePolicy.ON_NO_LINKS)


@EITHER
@pytest.mark.requirement("TMP-02")
@pytest.mark.parametrize("lifetime", [None, ON_CLOSE])
def test_a_node_that_is_deleted_on_close_tells_its_other_links(
    direction: str, lifetime: int | None
) -> None:
    made = Made(Broker(), direction=direction, lifetime=lifetime)
    made.use()
    made.put()
    made.client.send(Detach(handle=0, closed=True))
    gone = made.client.expect(Detach)
    assert gone.handle == 1
    assert gone.error is not None
    assert gone.error.condition == "amqp:resource-deleted"
    assert not made.exists()


@EITHER
@pytest.mark.requirement("TMP-02")
def test_a_node_may_wait_for_its_links(direction: str) -> None:
    made = Made(Broker(), direction=direction, lifetime=NO_LINKS)
    made.use()
    made.put()
    made.detach()
    assert made.exists()
    made.detach(handle=1)
    assert not made.exists()
    assert made.client.bodies() == []


@EITHER
@pytest.mark.requirement("TMP-02")
def test_a_node_may_wait_for_its_messages(direction: str) -> None:
    made = Made(Broker(), direction=direction, lifetime=NO_MESSAGES)
    made.put()
    made.detach()
    assert made.exists()
    made.use()
    made.client.flow(handle=1, credit=1, delivery_count=0)
    made.client.expect_deliveries(b"kept")
    made.detach(handle=1)
    assert made.exists(), "what was released is back"
    made.client.attach(attach_receiver(made.address, name="last", snd_settle_mode=1))
    made.client.flow(handle=0, credit=1, delivery_count=0)
    made.client.expect(Transfer)
    assert made.client.expect(Detach).error is not None
    assert not made.exists()


@EITHER
@pytest.mark.requirement("TMP-02")
def test_a_node_may_wait_for_links_and_messages(direction: str) -> None:
    made = Made(Broker(), direction=direction, lifetime=NEITHER)
    made.put()
    made.detach()
    made.use()
    made.detach(handle=1)
    assert made.exists()
    made.client.attach(attach_receiver(made.address, name="last", snd_settle_mode=1))
    made.client.flow(handle=0, credit=1, delivery_count=0)
    made.client.expect_deliveries(b"kept")
    assert made.exists(), "a link is left"
    made.detach()
    assert not made.exists()


@EITHER
@pytest.mark.requirement("TMP-02")
@pytest.mark.parametrize("lifetime", [NO_LINKS, NO_MESSAGES, NEITHER])
def test_a_node_without_anything_ends_with_the_link_that_made_it(
    direction: str, lifetime: int
) -> None:
    made = Made(Broker(), direction=direction, lifetime=lifetime)
    made.detach()
    assert not made.exists()


@EITHER
@pytest.mark.requirement("TMP-03")
@pytest.mark.parametrize("expiry_policy", ["link-detach", "session-end", "connection-close"])
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda client: client.send(Close()), id="closed"),
        pytest.param(Client.hang_up, id="lost"),
    ],
)
def test_no_node_outlives_its_connection(
    direction: str, expiry_policy: str, end: Callable[[Client], None]
) -> None:
    made = Made(
        Broker(), direction=direction, lifetime=NEITHER, expiry_policy=expiry_policy, timeout=60
    )
    made.put()
    made.detach(closed=False)
    made.use()
    other = made.broker.session("other")
    other.attach_sender(made.address)
    end(made.client)
    assert not made.exists()
    told = other.expect(Detach).error
    assert told is not None
    assert told.condition == "amqp:resource-deleted"
    assert made.broker.router.expiries.waiting() == 0
    assert made.client.peer.dynamic.suspended() == 0


def test_a_dynamic_source_makes_a_queue_to_receive_from() -> None:
    broker = Broker(policy=AddressPolicy(auto_create=False))
    client = broker.session()
    asked = Source(dynamic=True, capabilities=["temporary-queue"])
    made = client.attach(attach_receiver(source=asked)).source
    assert made is not None
    assert made.dynamic
    client.flow(handle=0, credit=1, delivery_count=0)
    other = broker.session("other")
    other.attach_sender(made.address, kind="temporary-queue")
    other.transfer(body=b"reply", settled=True)
    client.expect_deliveries(b"reply")


# -- the terminus that created the node


@EITHER
@pytest.mark.requirement("TMP-03", "SUB-25")
@pytest.mark.parametrize(
    ("expiry_policy", "timeout", "end"),
    [
        pytest.param("session-end", 0, End(), id="session ended"),
        pytest.param("link-detach", 2, None, id="time out of its link"),
        pytest.param("session-end", 2, End(), id="time out of its session"),
    ],
)
def test_a_node_lives_as_long_as_the_terminus_that_made_it(
    direction: str, expiry_policy: str, timeout: int, end: End | None
) -> None:
    made = Made(Broker(), direction=direction, expiry_policy=expiry_policy, timeout=timeout)
    made.detach(closed=False)
    assert made.exists()
    if end is not None:
        made.broker.advance(3000)
        assert made.exists(), "the session goes on"
        made.client.send(end)
    if timeout > 0:
        made.broker.advance(1999)
        assert made.exists()
        made.broker.advance(1)
    assert not made.exists()
    assert made.client.peer.dynamic.suspended() == 0


@EITHER
@pytest.mark.requirement("TMP-01", "SUB-25")
@pytest.mark.parametrize("by", ["its address", "its name"])
def test_a_re_attach_within_the_timeout_finds_the_node(direction: str, by: str) -> None:
    made = Made(Broker(), direction=direction, timeout=2)
    made.put()
    made.detach(closed=False)
    made.broker.advance(1999)
    again = made.ask(dynamic=True) if by == "its name" else made.ask(address=made.address)
    assert (again.address, again.timeout) == (made.address, 2)
    made.broker.advance(30_000)
    assert made.exists()
    assert made.broker.queue(made.address).backlogs.waiting == 1
    assert len(made.broker.router.queues) == 1
    made.detach(closed=False)
    made.broker.advance(1999)
    assert made.exists()
    made.broker.advance(1)
    assert not made.exists()


@EITHER
@pytest.mark.requirement("TMP-03", "SUB-37")
def test_a_stolen_link_leaves_the_node_to_the_thief(direction: str) -> None:
    made = Made(Broker(), direction=direction, expiry_policy="session-end")
    stolen = attach_sender if direction == "target" else attach_receiver
    made.client.send(stolen(made.address, name="creator", handle=1))
    told = made.client.expect(Detach).error
    assert told is not None
    assert told.condition == "amqp:link:stolen"
    made.client.expect(Attach)
    assert made.exists()
    made.client.send(Detach(handle=1, closed=True))
    assert not made.exists()


@EITHER
@pytest.mark.requirement("TMP-03")
def test_a_link_of_that_name_to_elsewhere_is_the_end_of_the_terminus(direction: str) -> None:
    made = Made(Broker(), direction=direction, expiry_policy="session-end")
    made.detach(closed=False)
    made.ask(address="elsewhere")
    assert not made.exists()
    made.detach(closed=False)
    assert "elsewhere" in made.broker.router.queues


@EITHER
def test_a_node_deleted_by_an_administrator_is_made_anew(direction: str) -> None:
    made = Made(Broker(), direction=direction, expiry_policy="session-end")
    made.detach(closed=False)
    node = made.broker.router.find_named(made.address, "")
    assert node is not None
    made.broker.router.delete(node, made.broker.journal.batch)
    again = made.ask(dynamic=True)
    assert again.address != made.address
    assert list(made.broker.router.queues) == [again.address]


KINDS = [
    pytest.param("queue", "topic", id="a topic after a queue"),
    pytest.param("topic", "queue", id="a queue after a topic"),
]


@EITHER
@pytest.mark.parametrize(("kind", "other"), KINDS)
@pytest.mark.requirement("TMP-01", "TMP-03")
def test_a_node_of_another_kind_is_another_terminus(direction: str, kind: str, other: str) -> None:
    made = Made(Broker(), direction=direction, expiry_policy="session-end")
    made.detach()
    first = made.ask(1, dynamic=True, capabilities=[f"temporary-{kind}"])
    made.detach(closed=False, handle=1)
    again = made.ask(2, dynamic=True, capabilities=[f"temporary-{other}"])
    assert again.address is not None
    assert again.address.startswith(f"$tmp/{other}/")
    router = made.broker.router
    assert first.address not in [*router.queues, *router.topics]
    assert [again.address] == [*router.queues, *router.topics]
