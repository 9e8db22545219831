"""Login at an embedded broker with users: SASL on a real socket."""

import pytest

from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.sasl_frames import SASL_AUTH, SASL_OK, SaslMechanisms, SaslOutcome
from broker.embedding import Broker
from tests.support.embedded import port_of
from tests.support.socket_client import SocketClient

ATTEMPTS = [
    pytest.param("PLAIN", b"\0ada\0engine", SASL_OK, id="name and password"),
    pytest.param("PLAIN", b"ada\0ada\0engine", SASL_OK, id="authorized as oneself"),
    pytest.param("PLAIN", b"bob\0ada\0engine", SASL_AUTH, id="authorized as somebody else"),
    pytest.param("PLAIN", b"\0ada\0wrong", SASL_AUTH, id="wrong password"),
    pytest.param("PLAIN", b"\0bob\0engine", SASL_AUTH, id="another's password"),
    pytest.param("PLAIN", b"\0eve\0engine", SASL_AUTH, id="unknown user"),
    pytest.param("PLAIN", b"ada", SASL_AUTH, id="no NUL"),
    pytest.param("ANONYMOUS", b"", SASL_AUTH, id="anonymous"),
]


@pytest.mark.parametrize(("mechanism", "response", "code"), ATTEMPTS)
async def test_the_outcome_tells(mechanism: str, response: bytes, code: int) -> None:
    async with (
        Broker(users={"ada": "engine", "bob": "builder"}) as running,
        SocketClient(port_of(running)) as client,
    ):
        client.login(mechanism, response)
        assert await client.header() == SASL_HEADER
        offered = await client.next()
        assert isinstance(offered, SaslMechanisms)
        assert offered.mechanisms == ["PLAIN"]
        outcome = await client.next()
        assert isinstance(outcome, SaslOutcome)
        assert outcome.code == code


async def test_leaving_the_sasl_layer_out_does_not_get_around_it() -> None:
    async with (
        Broker(users={"ada": "engine"}) as running,
        SocketClient(port_of(running)) as client,
    ):
        client.send_bytes(AMQP_HEADER)
        assert await client.header() == SASL_HEADER
        assert await client.eof()


@pytest.mark.parametrize(
    ("users", "told"),
    [
        pytest.param({"a:b": "x"}, "has no colon", id="a colon"),
        pytest.param({"ada": ""}, "not empty", id="no password"),
    ],
)
def test_users_that_could_never_enter_are_refused(users: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Broker(users=users)


def test_a_password_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="'ada' has no text"):
        Broker(users={"ada": 1})  # type: ignore[dict-item]
