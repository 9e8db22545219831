"""The brokers on which the project runs its own harness."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypedDict

import pytest

# Appended last, so that the checkout does not hide an installed wheel.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.interop.broker_process import PASSWORD, USER, BrokerProcess
from tests.interop.secured_broker import SecuredBroker

SETTINGS = """\
# Every case has something to try: an idle time-out that is soon over, a message that is
# soon too large, an address that is not made, and queues that are soon full.
idle_time_out_ms = 2000
max_message_size = 2_000_000

[[address]]
pattern = "missing.*"
auto_create = false

[[address]]
pattern = "small.blocking"
max_messages = 20

[[address]]
pattern = "small.rejecting"
max_messages = 20
full = "reject"

[[address]]
pattern = "small.dead-letters"
max_messages = 20
full = "reject"

[[address]]
pattern = "moving"
dead_letter = "small.dead-letters"

[[address]]
pattern = "unique"
duplicate_window = 100
"""


class NamedAddresses(TypedDict):
    """The addresses of a broker that cases need, as options of the command."""

    missing_address: str
    blocking_address: str
    rejecting_address: str
    dead_letter_address: str
    deduplicating_address: str


ADDRESSES: Final[NamedAddresses] = {
    "missing_address": "missing.node",
    "blocking_address": "small.blocking",
    "rejecting_address": "small.rejecting",
    "dead_letter_address": "moving=small.dead-letters",
    "deduplicating_address": "unique",
}
"""The addresses of SETTINGS."""


@pytest.fixture(scope="session")
def broker_with_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    yield from _running(
        BrokerProcess(
            tmp_path_factory.mktemp("with-users"),
            settings=SETTINGS,
            variables={"JMS_BROKER_USER": USER, "JMS_BROKER_PASSWORD": PASSWORD},
        )
    )


@pytest.fixture(scope="session")
def open_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that any client may enter without a login."""
    yield from _running(BrokerProcess(tmp_path_factory.mktemp("open"), settings=SETTINGS))


@pytest.fixture(scope="session")
def secured_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with TLS, client certificates, SCRAM and rules."""
    yield from _running(SecuredBroker(tmp_path_factory.mktemp("secured"), settings=SETTINGS))


def _running(process: BrokerProcess) -> Iterator[BrokerProcess]:
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0
