"""Opening, container ids, SASL, heartbeats and shutdown, seen by python-qpid-proton."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest
from proton import SASL, Condition, Delivery, Endpoint, Message, symbol, uint
from proton.handlers import MessagingHandler
from proton.reactor import Container
from proton.utils import BlockingConnection, SyncRequestResponse

from tests.interop.broker_process import PASSWORD, USER, Broker, BrokerProcess
from tests.interop.proton_peer import LostError, Peer

pytestmark = pytest.mark.slow

SOLE = "sole-connection-for-container"
POLICY = "sole-connection-enforcement-policy"
REFUSE, CLOSE_EXISTING = uint(0), uint(1)
FAILED = symbol("amqp:connection-establishment-failed")


def sole(
    broker: Broker,
    container_id: str,
    *,
    desired: bool = True,
    properties: Mapping[str, object] | None = None,
) -> Peer:
    """Return an open connection that wants `container_id` for itself, unless `desired` is False."""
    return Peer(
        broker.url,
        container_id=container_id,
        desired_capabilities=[SOLE] if desired else [],
        properties=properties,
    ).opened()


def closed_with(peer: Peer) -> Condition:
    """Wait for the broker's close and return its error, which must be there."""
    peer.until(lambda: peer.connection.state & Endpoint.REMOTE_CLOSED)
    condition = peer.connection.remote_condition
    assert condition is not None
    return condition


def assert_refused(peer: Peer) -> None:
    """Check that the connection was refused exactly as CON-03 demands."""
    assert (peer.connection.remote_properties or {}).get(FAILED) is True
    condition = closed_with(peer)
    assert condition.name == "amqp:invalid-field"
    assert condition.info == {symbol("invalid-field"): symbol("container-id")}
    info: Any = condition.info
    ((key, value),) = info.items()
    assert isinstance(key, symbol)
    assert isinstance(value, symbol)


def assert_open(peer: Peer) -> None:
    peer.round_trip()
    assert FAILED not in (peer.connection.remote_properties or {})
    assert not peer.connection.state & Endpoint.REMOTE_CLOSED


# ---- open


def test_the_open_offers_what_there_is_and_nothing_else(broker: Broker) -> None:
    with Peer(broker.url).opened() as peer:
        offered = {str(each) for each in peer.connection.remote_offered_capabilities or ()}
        assert {"ANONYMOUS-RELAY", "DELAYED_DELIVERY", SOLE, "SHARED-SUBS", "SHARED-SUB"} <= offered
        assert peer.connection.remote_container
        assert peer.transport.remote_max_frame_size >= 512
        assert peer.transport.remote_channel_max > 0


def test_connections_without_frames_may_close_at_once(broker: Broker) -> None:
    for _ in range(50):
        with Peer(broker.url):
            pass


def test_a_client_without_a_sasl_layer_is_let_in_where_everybody_is(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url, sasl=False) as peer:
        peer.fill(address, "a")
        assert peer.bodies(address) == ["a"]


# ---- container ids


@pytest.mark.requirement("CON-02")
@pytest.mark.requirement("CON-03")
@pytest.mark.parametrize(
    ("holder_wants", "newcomer_wants"),
    [
        pytest.param(True, True, id="both want it alone"),
        pytest.param(True, False, id="the holder wants it alone"),
        pytest.param(False, True, id="the newcomer wants it alone"),
    ],
)
def test_a_container_id_in_use_is_refused(
    broker: Broker, address: str, holder_wants: bool, newcomer_wants: bool
) -> None:
    with sole(broker, address, desired=holder_wants) as holder:
        with sole(broker, address, desired=newcomer_wants) as newcomer:
            assert_refused(newcomer)
        assert_open(holder)


@pytest.mark.requirement("CON-06")
def test_who_does_not_ask_to_be_alone_shares_a_container_id(broker: Broker, address: str) -> None:
    with (
        sole(broker, address, desired=False) as one,
        sole(broker, address, desired=False) as other,
    ):
        assert_open(one)
        assert_open(other)


@pytest.mark.requirement("CON-04")
def test_a_container_id_is_free_after_a_close(broker: Broker, address: str) -> None:
    for _ in range(5):
        with sole(broker, address) as holder:
            assert_open(holder)


@pytest.mark.requirement("CON-04")
def test_a_container_id_is_free_after_the_socket_is_gone(broker: Broker, address: str) -> None:
    with sole(broker, address) as holder:
        assert_open(holder)
        holder.cut()
    for _ in range(1000):
        with sole(broker, address) as newcomer:
            if FAILED not in (newcomer.connection.remote_properties or {}):
                assert_open(newcomer)
                return
    pytest.fail("the id is still held")


@pytest.mark.requirement("CON-05")
def test_close_existing_closes_a_holder_that_agreed_to_it(broker: Broker, address: str) -> None:
    policy = {POLICY: CLOSE_EXISTING}
    with (
        sole(broker, address, properties=policy) as holder,
        sole(broker, address, properties=policy) as newcomer,
    ):
        assert_open(newcomer)
        condition = closed_with(holder)
        assert condition.name == "amqp:resource-locked"
        assert condition.info == {symbol("sole-connection-enforcement"): True}


@pytest.mark.requirement("CON-05")
@pytest.mark.parametrize(
    ("holder", "newcomer", "stays"),
    [
        pytest.param(REFUSE, CLOSE_EXISTING, True, id="the holder refuses"),
        pytest.param(None, CLOSE_EXISTING, True, id="the holder says nothing: refuse"),
        pytest.param(CLOSE_EXISTING, REFUSE, False, id="the holder agreed to be closed"),
        pytest.param(CLOSE_EXISTING, None, False, id="the newcomer says nothing"),
    ],
)
def test_the_holders_policy_wins(
    broker: Broker, address: str, holder: object, newcomer: object, stays: bool
) -> None:
    def properties(policy: object) -> dict[str, object]:
        return {} if policy is None else {POLICY: policy}

    with (
        sole(broker, address, properties=properties(holder)) as first,
        sole(broker, address, properties=properties(newcomer)) as second,
    ):
        if stays:
            assert_refused(second)
            assert_open(first)
        else:
            assert closed_with(first).name == "amqp:resource-locked"
            assert_open(second)


@pytest.mark.requirement("CON-05")
def test_strong_detection_needs_only_one_exclusive_party(broker: Broker, address: str) -> None:
    detection = {"sole-connection-detection-policy": uint(0)}
    with (
        sole(broker, address, properties=detection) as holder,
        sole(broker, address, desired=False) as newcomer,
    ):
        assert_refused(newcomer)
        assert_open(holder)


@pytest.mark.requirement("CON-05")
@pytest.mark.requirement("CON-04")
def test_messages_of_a_closed_holder_go_to_the_newcomer(broker: Broker, address: str) -> None:
    policy = {POLICY: CLOSE_EXISTING}
    with sole(broker, address, properties=policy) as holder:
        holder.fill(address, "a")
        holder.take(holder.receiver(address, credit=1))
        with sole(broker, address, properties=policy) as newcomer:
            _, message = newcomer.take(newcomer.receiver(address, credit=1))
            assert message.body == "a"


# ---- SASL


def test_plain_with_the_right_password_lets_in(strict_broker: Broker, address: str) -> None:
    with Peer(strict_broker.url, user=USER, password=PASSWORD) as peer:
        peer.fill(address, "a")
        assert peer.bodies(address) == ["a"]
        assert peer.transport.sasl().outcome == SASL.OK


@pytest.mark.parametrize(
    ("user", "password"),
    [
        pytest.param(USER, "wrong", id="a wrong password"),
        pytest.param(USER, PASSWORD + " ", id="a password with more behind it"),
        pytest.param(USER, PASSWORD.upper(), id="another case"),
        pytest.param("mallory", PASSWORD, id="an unknown user"),
        pytest.param(USER, "", id="no password"),
    ],
)
def test_plain_with_anything_else_is_refused(
    strict_broker: Broker, user: str, password: str
) -> None:
    """The outcome is `auth`, or `sys-temp` once the logins of a user have failed in a row."""
    with Peer(strict_broker.url, user=user, password=password) as peer:
        with pytest.raises(LostError):
            peer.until(lambda: peer.connection.state & Endpoint.REMOTE_ACTIVE)
        assert peer.transport.sasl().outcome in (SASL.AUTH, SASL.TEMP)


def test_nobody_enters_without_a_name_where_there_are_users(strict_broker: Broker) -> None:
    with Peer(strict_broker.url, mechanisms="ANONYMOUS") as peer:
        with pytest.raises(LostError):
            peer.until(lambda: peer.connection.state & Endpoint.REMOTE_ACTIVE)
        assert not peer.transport.authenticated


def test_nobody_enters_without_sasl_where_there_are_users(strict_broker: Broker) -> None:
    with Peer(strict_broker.url, sasl=False) as peer, pytest.raises(LostError):
        peer.until(lambda: peer.connection.state & Endpoint.REMOTE_ACTIVE)


# ---- heartbeats


def test_the_broker_sends_what_an_idle_peer_asks_for(broker: Broker, address: str) -> None:
    with Peer(broker.url, idle_time_out=0.6) as peer:
        peer.opened().run_for(2.5)
        peer.fill(address, "a")


def test_a_peer_that_sends_its_heartbeats_may_stay(strict_broker: Broker, address: str) -> None:
    with Peer(strict_broker.url, user=USER, password=PASSWORD) as peer:
        peer.opened().run_for(3)
        peer.fill(address, "a")


def test_a_peer_that_falls_silent_is_closed(strict_broker: Broker) -> None:
    with Peer(strict_broker.url, user=USER, password=PASSWORD) as peer:
        peer.opened()
        peer.heartbeats = False
        assert closed_with(peer).name == "amqp:resource-limit-exceeded"


# ---- shutdown


def test_a_broker_that_is_stopped_closes_every_connection_in_order(
    own_broker: BrokerProcess, address: str
) -> None:
    with Peer(own_broker.url) as one, Peer(own_broker.url) as other:
        one.fill(address, "a")
        other.opened()
        own_broker.terminate()
        assert closed_with(one).name == "amqp:connection:forced"
        assert closed_with(other).name == "amqp:connection:forced"
    assert own_broker.wait() == 0


# ---- the library's own ways


class Answering(MessagingHandler):
    """Answers every request over the relay, until a request says "stop"."""

    def __init__(self, url: str, address: str) -> None:
        super().__init__()
        self._url = url
        self._address = address
        self._stopping = False

    def on_start(self, event: Any) -> None:
        connection = event.container.connect(self._url, reconnect=False)
        event.container.create_receiver(connection, self._address)
        self._relay = event.container.create_sender(connection, None)

    def on_message(self, event: Any) -> None:
        request = event.message
        answer = Message(body=f"re: {request.body}")
        answer.address = request.reply_to
        answer.correlation_id = request.correlation_id
        self._relay.send(answer)
        self._stopping = request.body == "stop"

    def on_accepted(self, event: Any) -> None:
        if self._stopping:
            event.connection.close()


def test_the_blocking_interface(broker: Broker, address: str) -> None:
    connection = BlockingConnection(broker.url, timeout=15)
    sender = connection.create_sender(address)
    for n in range(20):
        assert sender.send(Message(body=n)).remote_state == Delivery.ACCEPTED
    receiver = connection.create_receiver(address, credit=5)
    for n in range(20):
        assert receiver.receive(timeout=15).body == n
        receiver.accept()
    connection.close()


def test_a_request_over_a_dynamic_node(broker: Broker, address: str) -> None:
    """One side blocks on each request; the other, a reactor, answers over the relay."""
    answering = Container(Answering(broker.url, address))
    thread = threading.Thread(target=answering.run)
    thread.start()
    connection = BlockingConnection(broker.url, timeout=15)
    requests = SyncRequestResponse(connection, address)
    for n in range(10):
        assert requests.call(Message(body=n)).body == f"re: {n}"
    assert requests.call(Message(body="stop")).body == "re: stop"
    connection.close()
    thread.join(timeout=15)
    assert not thread.is_alive()
