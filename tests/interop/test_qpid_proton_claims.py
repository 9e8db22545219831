"""A connection of python-qpid-proton renews its token at `$cbs`, as clients of Azure do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from proton import Message, Receiver, Sender

from broker.cli.requests import RefusalError, managed
from tests.interop.broker_process import BrokerProcess
from tests.interop.proton_peer import LostError, Peer
from tests.support.tokens import AUDIENCE, ISSUER, TokenIssuer

pytestmark = [pytest.mark.slow, pytest.mark.requirement("SEC-07")]

TOKENS: Final = TokenIssuer()
LIFE_S: Final = 2.0
"""Seconds for which the token of a login is valid in these tests."""

PATIENCE_S: Final = 20.0

SETTINGS: Final = f"""
[oauth]
issuer = "{ISSUER}"
audience = "{AUDIENCE}"
jwks = "jwks.json"
leeway_s = 0
"""


@pytest.fixture(scope="module")
def token_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield a broker that takes tokens."""
    folder: Path = tmp_path_factory.mktemp("tokens")
    (folder / "jwks.json").write_bytes(TOKENS.jwks())
    process = BrokerProcess(folder, settings=SETTINGS)
    yield process
    assert process.stop() == 0


def entered(broker: BrokerProcess, token: str) -> Peer:
    """Return a connection that has logged in with a token as its password."""
    return Peer(broker.url, user="ada", password=token).opened()


def short_token() -> str:
    return TOKENS.token(exp=time.time() + LIFE_S)


class Claims:
    """The two links to `$cbs`."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.sender: Sender = peer.sender("$cbs")
        self.receiver: Receiver = peer.receiver("$cbs", credit=10)
        self._number = 0

    def put(self, token: str, kind: str = "jwt") -> int:
        """Return the status with which the broker answers a new token."""
        self._number += 1
        properties = {
            "operation": "put-token",
            "type": kind,
            "name": "amqp://broker/orders",
            "expiration": int(time.time()) + 600,
        }
        message = Message(id=self._number, properties=properties, body=token)
        self.peer.send(self.sender, message)
        _, reply = self.peer.take(self.receiver)
        assert reply.correlation_id == self._number
        told: Any = reply.properties
        return int(told["status-code"])


def test_a_renewed_token_keeps_the_connection_open(token_broker: BrokerProcess) -> None:
    with entered(token_broker, short_token()) as peer:
        assert Claims(peer).put(TOKENS.token()) == 202
        peer.run_for(LIFE_S + 0.5)
        peer.fill("renewed", "still there")


def test_a_login_is_renewed_by_management(token_broker: BrokerProcess) -> None:
    end_s = int(time.time()) + 600
    url = token_broker.url.replace("amqp://", f"amqp://ada:{short_token()}@")
    with managed(url, PATIENCE_S) as requests:
        told = requests.ask("RENEW", "login", "own", token=TOKENS.token(exp=end_s))
        with pytest.raises(RefusalError) as refused:
            requests.ask("RENEW", "login", "own", token=TOKENS.token(sub="other"))
    assert told["valid_until_at"] == end_s * 1000
    assert refused.value.status == 401


def test_without_a_new_token_the_connection_ends(token_broker: BrokerProcess) -> None:
    with (
        entered(token_broker, short_token()) as peer,
        pytest.raises(LostError, match="credential expired"),
    ):
        peer.run_for(LIFE_S + 5)


REFUSED = [
    pytest.param({"sub": "other"}, id="of another subject"),
    pytest.param({"preferred_username": "eve"}, id="of another user"),
    pytest.param({"iss": "https://evil.example"}, id="of another issuer"),
    pytest.param({"aud": "another"}, id="for another audience"),
    pytest.param({"exp": 1}, id="that has expired"),
]


@pytest.mark.parametrize("changed", REFUSED)
def test_a_token_changes_nothing(token_broker: BrokerProcess, changed: dict[str, object]) -> None:
    with entered(token_broker, short_token()) as peer:
        claims = Claims(peer)
        assert claims.put(TOKENS.token(**changed)) == 401
        peer.fill("refused", "the login is as before")
        with pytest.raises(LostError, match="credential expired"):
            peer.run_for(LIFE_S + 5)


def test_a_token_with_other_roles_takes_rights_away(token_broker: BrokerProcess) -> None:
    with entered(token_broker, TOKENS.token()) as peer:
        sender = peer.sender("rights")
        assert Claims(peer).put(TOKENS.token(roles=["monitor"])) == 202
        peer.until(lambda: sender.remote_condition is not None)
        assert sender.remote_condition is not None
        assert sender.remote_condition.name == "amqp:unauthorized-access"


def test_azures_other_kinds_of_tokens_are_refused(token_broker: BrokerProcess) -> None:
    with entered(token_broker, TOKENS.token()) as peer:
        assert Claims(peer).put("SharedAccessSignature x", "servicebus.windows.net:sastoken") == 400
