"""rhea, the AMQP client of Node.js, against the broker: every case of rhea/ as a test."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.interop.broker_process import Broker
from tests.interop.foreign_client import ForeignClient, Report, install, run, selected
from tests.interop.secured_broker import SecuredBroker

pytestmark = pytest.mark.slow

CLIENT: Final = ForeignClient("rhea", sources="*.js", needs=["node", "npm"])
PINNED: Final = ["package.json", "package-lock.json", ".npmrc"]


def installed() -> Path:
    """Return a folder in which node finds rhea, in exactly the version of the lock file."""
    place, missing = CLIENT.place(pinned=PINNED)
    for name in PINNED:
        shutil.copy(CLIENT.folder / name, place)
    if missing:
        install(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], place)
    return place


@pytest.fixture(scope="session")
def report(
    request: pytest.FixtureRequest,
    broker: Broker,
    strict_broker: Broker,
    secured_broker: SecuredBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Report:
    """Return the results of the selected cases, which run when this is first asked for."""
    CLIENT.need()
    folder = tmp_path_factory.mktemp("rhea")
    (folder / "node_modules").symlink_to(installed() / "node_modules")
    for source in CLIENT.folder.glob("*.js"):
        shutil.copy(source, folder)
    command = ["node", "main.js", *selected(request, test_rhea.__name__)]
    return run(command, folder, broker=broker, strict=strict_broker, secured=secured_broker)


@pytest.mark.parametrize("case", CLIENT.cases())
def test_rhea(case: str, report: Report) -> None:
    report.check(case)


def test_every_case_of_rhea_is_known_here() -> None:
    """A case that is written in another form would never be reported."""
    assert len(CLIENT.cases()) == CLIENT.written() > 0
