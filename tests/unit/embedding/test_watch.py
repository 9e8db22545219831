"""The log of an embedded broker: only a configured logger gets it, nothing is printed."""

import logging
import subprocess
import sys

import pytest

from broker.embedding import Broker
from broker.embedding.watch import LOGGER, Watch
from broker.log_events import SUBSCRIPTION_ANEW
from tests.support.broker import Broker as Bare
from tests.support.broker import Doorman


def test_connections_are_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=LOGGER)
    peer = Bare().connect("ada\nevil").peer
    watch = Watch()
    watch.opened(peer)
    watch.closed(peer, "left")
    watch.refused(peer, "no\npassword")
    watch.noticed(SUBSCRIPTION_ANEW.notice("3 messages\ndropped"))
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("DEBUG", r"connection of 'ada\nevil' opened"),
        ("DEBUG", r"connection of 'ada\nevil' closed: 'left'"),
        ("WARNING", r"connection of 'ada\nevil' refused: 'no\npassword'"),
        ("WARNING", r"SUB-002 '3 messages\ndropped'"),
    ]


def test_an_internal_error_is_told_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    error = ZeroDivisionError("a bug")
    Watch().failed(Bare(authenticator=Doorman()).connect("ada").peer, error)
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_a_second_broker_adds_no_second_silence() -> None:
    with Broker(), Broker():
        assert len(logging.getLogger(LOGGER).handlers) == 1


def test_nothing_is_printed_where_nobody_set_up_a_log() -> None:
    program = """
from broker.embedding.watch import Watch
class Peer: container_id = "ada"
Watch().refused(Peer(), "no")
Watch().failed(Peer(), ValueError())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
