"""Brokers for the interop tests, and the treatment of missing tools."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import pytest

# Appended at the end, so that the checkout does not hide an installed wheel. tests/conftest.py
# comes too late for this file if pytest is given this folder alone.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.interop.broker_process import (
    PASSWORD,
    STRICT,
    USER,
    Broker,
    BrokerProcess,
)
from tests.interop.secured_broker import SecuredBroker
from tests.support.quick_logins import quick_administrator

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.interop.junit import JUnit

NEED_PROTON: Final = {
    "test_command_line.py",
    "test_command_line_doctor.py",
    "test_command_line_held.py",
    "test_command_line_load.py",
    "test_command_line_management.py",
    "test_command_line_tls.py",
    "test_command_line_top.py",
    "test_command_line_transactions.py",
    "test_command_line_users.py",
    "test_jms_over_http.py",
    "test_qpid_jms_mapping.py",
    "test_secure_broker.py",
    *(path.name for path in Path(__file__).parent.glob("test_qpid_proton_*.py")),
}


def not_available(reason: str) -> NoReturn:
    """Skip with `reason`; in continuous integration, where nothing may be missing, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; under CI=true that is an error", pytrace=False)
    pytest.skip(reason)


class NotCollected(pytest.Module):
    """A module of tests that cannot be imported, and is skipped with the reason."""

    def collect(self) -> NoReturn:
        not_available("python-qpid-proton is not installed: no test with it")


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    if importlib.util.find_spec("proton") is None and module_path.name in NEED_PROTON:
        module: pytest.Module = NotCollected.from_parent(parent, path=module_path)
        return module
    return None


@pytest.fixture(scope="session", autouse=True)
def children_hear_interrupts() -> None:
    """Let children receive SIGINT: a shell makes a run in the background ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Yield the broker that most tests share: it has default settings, so it needs no login."""
    if url := os.environ.get("INTEROP_BROKER_URL"):
        yield Broker(url)
        return
    process = BrokerProcess(tmp_path_factory.mktemp("broker"))
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0


@pytest.fixture(scope="session")
def strict_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Yield a broker that knows one user, and refuses what STRICT says."""
    if url := os.environ.get("INTEROP_STRICT_BROKER_URL"):
        yield Broker(url)
        return
    folder = tmp_path_factory.mktemp("strict-broker")
    user = quick_administrator(folder, USER, PASSWORD)
    process = BrokerProcess(folder, settings=f"{user}{STRICT}")
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0


@pytest.fixture(scope="session")
def secured_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Yield a broker with TLS, certificates, SCRAM and rules."""
    process = SecuredBroker(tmp_path_factory.mktemp("secured-broker"))
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Yield a broker of this test alone, which may stop it."""
    process = BrokerProcess(tmp_path)
    yield process
    if process.running:
        process.stop()


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    """Return an address that no other test uses, and no other run."""
    return f"{request.node.originalname}-{os.urandom(4).hex()}"


@pytest.fixture(scope="session")
def maven() -> str:
    """Return the command `mvn`; skip unless it and a JDK are installed."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            not_available(f"{tool} is not installed: no test with Qpid JMS")
    return "mvn"


@pytest.fixture(scope="session")
def junit(maven: str) -> JUnit:
    """Return the JUnit tests of qpid_jms/, built with `maven`."""
    from tests.interop.junit import built

    assert maven
    return built()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Yield Debian's browser, or skip with the reason."""
    yield from debian_browser()


def debian_browser() -> Iterator[Browser]:
    """Yield Debian's browser and close it, or skip with the reason."""
    program = shutil.which("chromium")
    if program is None:
        not_available("chromium is not installed: no test in a browser")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
