"""Who may enter: SASL on a real socket against a users file (core 5.3)."""

from pathlib import Path

import pytest

from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.performatives import Open
from broker.amqp.sasl_frames import SASL_AUTH, SASL_OK, SaslMechanisms, SaslOutcome
from broker.app import App
from broker.security.authenticate import Users
from broker.settings import MEMORY, Settings
from tests.support.socket_client import SocketClient


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    users_file = tmp_path / "users"
    Users(users_file).add("ada", "engine")
    return Settings(port=0, users_file=users_file, store=MEMORY)


ATTEMPTS = [
    pytest.param("PLAIN", b"\0ada\0engine", SASL_OK, id="name and password"),
    pytest.param("PLAIN", b"ada\0ada\0engine", SASL_OK, id="authorized as oneself"),
    pytest.param("PLAIN", b"bob\0ada\0engine", SASL_AUTH, id="authorized as somebody else"),
    pytest.param("PLAIN", b"\0ada\0wrong", SASL_AUTH, id="wrong password"),
    pytest.param("PLAIN", b"\0bob\0engine", SASL_AUTH, id="unknown user"),
    pytest.param("PLAIN", b"\0ada\0", SASL_AUTH, id="empty password"),
    pytest.param("PLAIN", b"ada", SASL_AUTH, id="no NUL"),
    pytest.param("PLAIN", b"\0a\0b\0c", SASL_AUTH, id="three NULs"),
    pytest.param("PLAIN", b"\0\xff\xfe\0engine", SASL_AUTH, id="not UTF-8"),
    pytest.param("ANONYMOUS", b"", SASL_AUTH, id="anonymous where there are users"),
    pytest.param("SCRAM-SHA-256", b"n,,n=ada,r=x", SASL_AUTH, id="a mechanism not offered"),
]


@pytest.mark.parametrize(("mechanism", "response", "code"), ATTEMPTS)
async def test_the_outcome_tells(app: App, mechanism: str, response: bytes, code: int) -> None:
    async with SocketClient(app.port) as client:
        client.login(mechanism, response)
        assert await client.header() == SASL_HEADER
        offered = await client.next()
        assert isinstance(offered, SaslMechanisms)
        assert offered.mechanisms == ["PLAIN"]
        outcome = await client.next()
        assert isinstance(outcome, SaslOutcome)
        assert outcome.code == code
        if code != SASL_OK:
            assert await client.eof()
            assert app.stats.authentication_failures == 1


async def test_open_may_be_pipelined_behind_the_password(app: App) -> None:
    async with SocketClient(app.port) as client:
        client.login("PLAIN", b"\0ada\0engine")
        client.send_bytes(AMQP_HEADER)
        client.send(Open(container_id="eager"))
        assert await client.header() == SASL_HEADER
        assert isinstance(await client.next(), SaslMechanisms)
        assert isinstance(await client.next(), SaslOutcome)
        assert await client.header() == AMQP_HEADER
        assert isinstance(await client.next(), Open)
    assert app.stats.connections_opened == 1


async def test_leaving_the_sasl_layer_out_does_not_get_around_it(app: App) -> None:
    async with SocketClient(app.port) as client:
        client.send_bytes(AMQP_HEADER)
        assert await client.header() == SASL_HEADER
        assert await client.eof()
