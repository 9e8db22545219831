"""The command line against a running broker, as the issue's second "done when" says it."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.interop.broker_process import Broker, command, environment

pytestmark = pytest.mark.slow

COMMAND_SECONDS = 60


def run(broker: Broker, *arguments: str, text: str | None = None) -> str:
    """What `jms-broker ARGUMENTS` prints on standard output."""
    done = subprocess.run(
        [*command(), *arguments, "--url", broker.url],
        input=text,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_message_that_is_sent_is_received(broker: Broker) -> None:
    run(broker, "send", "hello", "world")
    assert "world" in run(broker, "receive", "hello", "--count", "1")


def test_browsing_shows_the_message_and_leaves_it(broker: Broker, address: str) -> None:
    run(broker, "send", address, "first", "second")
    assert run(broker, "browse", address).split() == ["first", "second"]
    assert run(broker, "receive", address, "--count", "2").split() == ["first", "second"]


def test_a_body_comes_from_standard_input(broker: Broker, address: str) -> None:
    run(broker, "send", address, text="from a pipe")
    assert "from a pipe" in run(broker, "receive", address, "--count", "1")


def test_json_is_for_programs(broker: Broker, address: str) -> None:
    run(broker, "send", address, "grüße")
    (line,) = run(broker, "receive", address, "--count", "1", "--json").splitlines()
    assert "grüße" in json.dumps(json.loads(line), ensure_ascii=False)
