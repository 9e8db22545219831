"""Failed TLS handshakes: each is counted, one in a minute is a line of the log."""

from broker.net.handshake_failures import FailureReason, HandshakeFailure
from broker.net.handshake_log import HandshakeLog
from broker.net.refusal_log import INTERVAL_MS
from tests.support.broker import Broker

FAILURE = HandshakeFailure(FailureReason.NOT_TLS, "192.0.2.7")


def test_a_flood_of_failures_is_one_line_a_minute() -> None:
    broker = Broker()
    log = HandshakeLog("secure", broker.container)
    for _ in range(100):
        log.note(FAILURE)
    assert broker.stats.tls_handshakes_failed == 100
    assert broker.watcher.events == [f"noticed listener secure: {FAILURE.text()}"]
    broker.advance(INTERVAL_MS)
    log.note(FAILURE)
    assert broker.watcher.events[1:] == [
        f"noticed listener secure: {FAILURE.text()}; 99 more since the last report"
    ]
