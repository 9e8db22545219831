"""Parts of a broker, made from the settings."""

import subprocess
import sys
from pathlib import Path

import pytest

from broker.amqp.limits import FRAME_BEFORE_OPEN, FRAME_OF_TOKEN_LOGIN
from broker.app import App
from broker.journal import Journal
from broker.parts import WRITTEN_TIMES, StoreSpace, access_of, limits_of
from broker.settings import Settings, SettingsError, given_settings
from storage.memory import MemoryStore
from tests.interop.broker_process import environment
from tests.support.staging import Staging, task
from tests.support.stores import GatedStore
from tests.support.tokens import TokenIssuer, oauth


class RoomyStore(GatedStore):
    """A store that always has 100,000 bytes free."""

    def free_bytes(self) -> int:
        return 100_000


@pytest.mark.requirement("PIP-15")
def test_room_for_the_commits_of_sinks_is_kept_free() -> None:
    """A commit of a sink writes the staged messages once more."""
    staging = Staging()
    space = StoreSpace(RoomyStore(), Journal(MemoryStore()), staging.stages)
    assert space.free_bytes() == 100_000
    stage = staging.send(task(), b"x" * 1000)
    assert space.free_bytes() == 100_000 - WRITTEN_TIMES * stage.bytes
    staging.commit((0, 0))
    assert space.free_bytes() == 100_000


def test_every_limit_of_the_settings_reaches_the_engine() -> None:
    settings = Settings(
        max_frame_size=4096,
        channel_max=7,
        handle_max=6,
        incoming_window=5,
        max_message_size=1000,
        partial_bytes_max=2000,
        handshake_timeout_ms=30,
        idle_time_out_ms=40,
        transactions_max=8,
        transaction_operations_max=9,
        transaction_bytes_max=10,
        transaction_timeout_ms=11,
        resume_max_s=12,
    )
    limits = limits_of(settings)
    assert limits.max_frame_size == 4096
    assert limits.channel_max == 7
    assert limits.handle_max == 6
    assert limits.incoming_window == 5
    assert limits.max_message_size == 1000
    assert limits.partial_bytes_max == 2000
    assert limits.handshake_timeout_ms == 30
    assert limits.idle_time_out_ms == 40
    assert limits.transactions_max == 8
    assert limits.transaction_operations_max == 9
    assert limits.transaction_bytes_max == 10
    assert limits.transaction_timeout_ms == 11
    assert limits.resume_max_s == 12
    assert limits.login_frame_max == FRAME_BEFORE_OPEN


@pytest.mark.requirement("SEC-07")
def test_frames_of_a_login_are_larger_where_tokens_log_in(tmp_path: Path) -> None:
    settings = Settings(oauth=oauth(tmp_path, TokenIssuer()))
    assert limits_of(settings).login_frame_max == FRAME_OF_TOKEN_LOGIN


def test_a_wrong_rules_file_is_a_wrong_setting(tmp_path: Path) -> None:
    file = tmp_path / "acl.toml"
    file.write_text("[[rule]]\nid = 'a'\n")
    with pytest.raises(SettingsError, match=r"acl\.toml: rule a: who must be a list"):
        access_of(Settings(acl_file=file))


def test_without_the_driver_of_postgresql_it_says_what_to_install() -> None:
    """A process of its own: here the driver is imported already."""
    program = (
        "import sys; sys.modules['asyncpg'] = None\n"
        "from broker.parts import store_of; from broker.settings import Settings\n"
        "store_of(Settings(store='postgresql://ada@nowhere/broker'))"
    )
    errors = run(program).stderr
    assert "SettingsError: the store is in PostgreSQL, and asyncpg is not" in errors
    assert "pip install 'jms-broker[postgresql]'" in errors


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.requirement("OPS-09")
def test_without_opentelemetry_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from broker.parts import exporter_of; from broker.settings import given_settings\n"
        "from broker.stats import Stats\n"
        "tracing = {'endpoint': 'http://127.0.0.1:4318/v1/traces'}\n"
        "exporter_of(given_settings(tracing=tracing), Stats(), print)"
    )
    errors = run(program).stderr
    assert "SettingsError: tracing.endpoint is set, and opentelemetry is not installed" in errors
    assert "pip install 'jms-broker[otel]'" in errors


@pytest.mark.requirement("OPS-09")
def test_a_broker_without_traces_imports_nothing_of_them() -> None:
    program = (
        "import sys; from broker.app import App; from broker.settings import given_settings\n"
        "App(given_settings(store='memory'))\n"
        "print([each for each in sys.modules"
        " if each.startswith(('opentelemetry', 'broker.tracing.'))])"
    )
    assert run(program).stdout == "[]\n"


@pytest.mark.requirement("SEC-07")
def test_without_joserfc_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['joserfc'] = None\n"
        "from broker.parts import login_of; from broker.settings import given_settings\n"
        "oauth = {'issuer': 'i', 'audience': 'a', 'jwks': 'keys.json'}\n"
        "login_of(given_settings(oauth=oauth, users_file='absent'))"
    )
    errors = run(program).stderr
    assert "SettingsError: [oauth] is set, and joserfc is not installed" in errors
    assert "pip install 'jms-broker[oauth]'" in errors


@pytest.mark.requirement("SEC-07")
def test_a_broker_without_tokens_does_not_load_what_they_need() -> None:
    program = (
        "import sys; from broker.app import App; from broker.settings import given_settings\n"
        "App(given_settings(users_file='absent', store='memory'))\n"
        "absent = ('joserfc', 'broker.net.token_logins', 'broker.management.claims')\n"
        "print([name for name in absent if name in sys.modules])"
    )
    assert run(program).stdout.strip() == "[]"


def test_a_wrong_selector_of_a_bridge_is_found_before_anything_is_opened() -> None:
    bridge = {"name": "b", "from": "q", "to": "r", "url": "amqp://there", "selector": "n >"}
    with pytest.raises(SettingsError, match="bridge 'b': selector"):
        App(given_settings(bridge=[bridge]))
