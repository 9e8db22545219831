"""Management responses as messages."""

from broker.clock import SystemClock
from broker.management.request import Envelope
from broker.management.response import CREATED, Response, as_message
from tests.support.management import read_reply

HERE = Envelope(reply_to="here", correlation_id=b"\xa1\x01c")


def test_status_body_and_what_it_answers() -> None:
    response = Response(status=CREATED, description="Created", body={"a": 1}, properties={"b": 2})
    read = read_reply(as_message(response, HERE, SystemClock()).encoded)
    assert (read.status, read.description, read.body) == (201, "Created", {"a": 1})
    assert (read.correlation_id, read.to, read.properties) == ("c", "here", {"b": 2})


def test_a_list_as_body_and_no_correlation() -> None:
    envelope = Envelope(reply_to="here", correlation_id=None)
    read = read_reply(as_message(Response(body=["a"]), envelope, SystemClock()).encoded)
    assert (read.status, read.body, read.correlation_id) == (200, ["a"], None)
