"""pyamqp, the transport of Azure's Service Bus client, against the broker: its cases as tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.interop.broker_process import ROOT, Broker
from tests.interop.foreign_client import ForeignClient, Report, install, run, selected

pytestmark = pytest.mark.slow

CLIENT: Final = ForeignClient("pyamqp", sources="*.py", needs=[])
PINNED: Final = ["requirements.txt"]


def installed() -> Path:
    """Return a folder of packages, in exactly the versions of the lock file."""
    place, missing = CLIENT.place(pinned=PINNED)
    if missing:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        lock = str(CLIENT.folder / "requirements.txt")
        into = ["--require-hashes", "--target", str(place), "--upgrade", "-r", lock]
        install([*pip, *into], place)
    return place


@pytest.fixture(scope="session")
def report(
    request: pytest.FixtureRequest,
    broker: Broker,
    strict_broker: Broker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Report:
    """Return the results of the selected cases, which run when this is first asked for."""
    CLIENT.need()
    path = os.pathsep.join([str(installed()), str(ROOT)])
    cases = selected(request, test_pyamqp.__name__)
    program = [sys.executable, "-m", "tests.interop.pyamqp.main", *cases]
    folder = tmp_path_factory.mktemp("pyamqp")
    command = ["env", f"PYTHONPATH={path}", *program]
    return run(command, folder, broker=broker, strict=strict_broker)


@pytest.mark.parametrize("case", CLIENT.cases())
def test_pyamqp(case: str, report: Report) -> None:
    report.check(case)


def test_every_case_of_pyamqp_is_known_here() -> None:
    """A case that is written in another form would never be reported."""
    assert len(CLIENT.cases()) == CLIENT.written() > 0
