"""The filters of an attach: in all forms that clients write, refused, echoed, and in force."""

import pytest

from broker.amqp.descriptors import NO_LOCAL_FILTER, SELECTOR_FILTER
from broker.amqp.encode import BytesWriter, put_value
from broker.amqp.errors import LinkFault
from broker.amqp.performatives import Flow
from broker.amqp.terminus import COPY, Source, SourceFilter
from broker.amqp.types import Described, Map, Symbol, ULong
from broker.links.filters import filters_of
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.errors import InvalidSelector
from broker.routing.selector import parse_selector
from tests.support.broker import Broker, Client
from tests.support.frames import Transfer, attach_receiver
from tests.support.selected import selectable

pytestmark = pytest.mark.requirement("RCV-05")


def stated(key: str, descriptor: int | str | None, value: object) -> SourceFilter:
    """Return a filter as a client states it, described unless `descriptor` is None."""
    encoded = BytesWriter()
    if descriptor is None:
        put_value(encoded, value)
    else:
        name = ULong(descriptor) if isinstance(descriptor, int) else Symbol(descriptor)
        put_value(encoded, Described(name, value))
    return SourceFilter(key=key, descriptor=descriptor, value=value, encoded=encoded.getvalue())


def source(*filters: SourceFilter, **fields: object) -> Source:
    return Source(address="q", filter=list(filters), **fields)  # type: ignore[arg-type]


SELECTING = ConsumerFilter(parse_selector("x = 1"))
NOT_OWN = ConsumerFilter(None, "client")
BY_NAME = "apache.org:selector-filter:string"
NO_LOCAL_BY_NAME = "apache.org:no-local-filter:list"

FORMS = [
    pytest.param([], None, id="no filter"),
    pytest.param([stated("jms-selector", SELECTOR_FILTER, "x = 1")], SELECTING, id="Qpid JMS"),
    pytest.param([stated("selector", BY_NAME, "x = 1")], SELECTING, id="proton"),
    pytest.param([stated(BY_NAME, BY_NAME, "x = 1")], SELECTING, id="azure"),
    pytest.param([stated("s", SELECTOR_FILTER, Symbol("x = 1"))], SELECTING, id="a symbol"),
    pytest.param([stated("s", SELECTOR_FILTER, "")], None, id="an empty selector"),
    pytest.param([stated("s", SELECTOR_FILTER, " \t")], None, id="a blank selector"),
    pytest.param([stated("s", SELECTOR_FILTER, None)], None, id="a null selector"),
    pytest.param(
        [stated("a", SELECTOR_FILTER, "x = 1 OR y = 2"), stated("b", BY_NAME, "z = 3")],
        ConsumerFilter(parse_selector("(x = 1 OR y = 2) AND (z = 3)")),
        id="two selectors",
    ),
    pytest.param(
        [stated("no-local", NO_LOCAL_FILTER, "NoLocalFilter{}")], NOT_OWN, id="no-local, Qpid JMS"
    ),
    pytest.param([stated("n", NO_LOCAL_BY_NAME, [])], NOT_OWN, id="no-local, as specified"),
    pytest.param([stated("n", NO_LOCAL_BY_NAME, None)], NOT_OWN, id="no-local, null"),
    pytest.param([stated("n", NO_LOCAL_BY_NAME, Map([]))], NOT_OWN, id="no-local, anything"),
    pytest.param(
        [stated("n", NO_LOCAL_FILTER, []), stated("s", SELECTOR_FILTER, "x = 1")],
        ConsumerFilter(parse_selector("x = 1"), "client"),
        id="both",
    ),
]


@pytest.mark.parametrize(("filters", "wanted"), FORMS)
def test_filters_say(filters: list[SourceFilter], wanted: ConsumerFilter | None) -> None:
    found = filters_of(source(*filters))
    assert found.of("client") == wanted
    assert found.stated == filters


UNKNOWN = [
    pytest.param(stated("x", 0x468C_0000_0007, "x"), id="an unknown number"),
    pytest.param(stated("jms-selector", "apache.org:xquery:string", "x"), id="an unknown symbol"),
    pytest.param(stated("jms-selector", None, None), id="null"),
]


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_unknown_filters_are_not_in_force(unknown: SourceFilter) -> None:
    selector = stated("s", SELECTOR_FILTER, "x = 1")
    found = filters_of(source(unknown, selector, unknown))
    assert (found.stated, found.of("client")) == ([selector], SELECTING)


REFUSED = [
    pytest.param(stated("s", None, "x = 1"), id="a value that is not described"),
    pytest.param(stated("s", SELECTOR_FILTER, 5), id="a number for a selector"),
    pytest.param(stated("s", BY_NAME, ["x = 1"]), id="a list for a selector"),
]


@pytest.mark.parametrize("filter", REFUSED)
def test_a_filter_is_refused(filter: SourceFilter) -> None:  # noqa: A002
    with pytest.raises(LinkFault) as refused:
        filters_of(source(stated("n", NO_LOCAL_FILTER, []), filter))
    assert refused.value.condition == "amqp:invalid-field"


def test_a_bad_selector_is_refused_by_its_own_position() -> None:
    good, bad = stated("a", SELECTOR_FILTER, "x = 1"), stated("b", SELECTOR_FILTER, "x = = 1")
    with pytest.raises(InvalidSelector) as refused:
        filters_of(source(good, bad))
    assert refused.value.position == 5


# -- on the wire

SELECTOR = stated("jms-selector", SELECTOR_FILTER, "x = 1")
NO_LOCAL = stated("no-local", NO_LOCAL_FILTER, "NoLocalFilter{}")


def publish(
    broker: Broker, *values: int, container_id: str = "publisher", kind: str = "queue"
) -> None:
    """Send messages with the property x, one for each of `values`."""
    sender = broker.session(container_id)
    sender.attach_sender(kind=kind)
    for number, value in enumerate(values):
        payload = selectable({"x": value}, body=f"x is {value}").encoded
        sender.transfer(number, settled=True, payload=payload)
    sender.hang_up()


def values_of(client: Client) -> list[bytes]:
    return [body.payload[-1:] for body in client.bodies() if isinstance(body, Transfer)]


def test_filters_in_force_are_echoed_as_they_came_and_unknown_ones_are_not() -> None:
    client = Broker().session()
    unknown = stated("x", "unknown:filter", "x")
    answer = client.attach(attach_receiver(source=source(unknown, SELECTOR, NO_LOCAL)))
    assert answer.source is not None
    echoed = [(each.key, each.encoded) for each in answer.source.filter]
    assert echoed == [(each.key, each.encoded) for each in (SELECTOR, NO_LOCAL)]


def test_a_bad_selector_is_refused_and_its_place_told() -> None:
    client = Broker().session()
    client.send(attach_receiver(source=source(stated("s", SELECTOR_FILTER, "x ~ 1"))))
    client.expect_refusal("amqp:invalid-field")


def test_a_consumer_gets_what_its_selector_takes_and_a_drain_ends() -> None:
    broker = Broker()
    publish(broker, 1, 2, 1)
    client = broker.session()
    client.attach(attach_receiver(source=source(SELECTOR)))
    client.flow(handle=0, delivery_count=0, credit=10, drain=True)
    bodies = client.bodies()
    transfers = [body for body in bodies if isinstance(body, Transfer)]
    assert [body.payload[-1:] for body in transfers] == [b"1", b"1"]
    flow = bodies[-1]
    assert isinstance(flow, Flow)
    assert (flow.delivery_count, flow.link_credit) == (10, 0)
    assert broker.queue().backlogs.waiting == 1


def test_a_browser_sees_what_its_selector_takes() -> None:
    broker = Broker()
    publish(broker, 2, 1, 2)
    client = broker.session()
    client.attach(attach_receiver(source=source(SELECTOR, distribution_mode=COPY)))
    client.flow(handle=0, delivery_count=0, credit=10)
    assert values_of(client) == [b"1"]
    assert broker.queue().backlogs.waiting == 3


def test_no_local_leaves_out_what_the_container_has_sent_on_any_link() -> None:
    broker = Broker()
    publish(broker, 1, container_id="client")
    publish(broker, 2, container_id="another")
    client = broker.session("client")
    client.attach(attach_receiver(source=source(NO_LOCAL)))
    client.flow(handle=0, delivery_count=0, credit=10)
    assert values_of(client) == [b"2"]


def test_what_a_subscriber_does_not_want_never_comes_to_its_subscription() -> None:
    broker = Broker()
    client = broker.session("client")
    filters = [SELECTOR, NO_LOCAL]
    client.attach(attach_receiver(source=source(*filters, capabilities=["topic"])))
    publish(broker, 1, 2, kind="topic")
    publish(broker, 1, container_id="client-2", kind="topic")
    (subscription,) = broker.router.topics["q"].subscriptions
    assert subscription.backlogs.waiting == 2
    client.flow(handle=0, delivery_count=0, credit=10)
    assert values_of(client) == [b"1", b"1"]


def test_a_subscriber_that_wants_none_of_its_own_gets_none_of_any_of_its_links() -> None:
    broker = Broker()
    client = broker.session("client")
    client.attach(attach_receiver(source=source(NO_LOCAL, capabilities=["topic"])))
    client.attach_sender(kind="topic", handle=1)
    for number, value in enumerate((1, 2)):
        payload = selectable({"x": value}, body=f"x is {value}").encoded
        client.transfer(number, handle=1, settled=True, payload=payload)
    publish(broker, 3, kind="topic")
    client.flow(handle=0, delivery_count=0, credit=10)
    assert values_of(client) == [b"3"]
