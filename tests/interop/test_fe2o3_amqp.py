"""fe2o3-amqp, an AMQP client of Rust that resumes deliveries: the cases of fe2o3_amqp/."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.interop.broker_process import Broker
from tests.interop.foreign_client import ForeignClient, Report, install, run, selected
from tests.support.caches import user_cache

pytestmark = pytest.mark.slow

CLIENT: Final = ForeignClient("fe2o3_amqp", sources="*.rs", needs=[])
CARGO: Final = (1, 85)
"""The oldest version that builds the client."""

SOURCES: Final = ["Cargo.toml", "Cargo.lock", "cases.rs"]


def need_cargo() -> None:
    """Skip without a Cargo that is new enough, also in CI: Debian 12 has none."""
    reason = f"no Cargo {'.'.join(map(str, CARGO))} or newer: no test with fe2o3-amqp"
    if shutil.which("cargo") is None:
        pytest.skip(reason)
    said = subprocess.run(["cargo", "--version"], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        pytest.skip(reason)
    major, minor, *_ = said.stdout.split()[1].split(".")
    if (int(major), int(minor)) < CARGO:
        pytest.skip(reason)


def built() -> Path:
    """Return the program, built with exactly the versions that Cargo.lock names."""
    with CLIENT.place(pinned=SOURCES) as (place, missing):
        # Cargo builds dependencies once, also for other checkouts of this user
        common = user_cache("jms-broker-tests-cargo")
        program = place / "bin" / "cases"
        if missing:
            install(
                ["cargo", "install", "--locked", "--debug", "--path", ".", "--root", str(place)],
                place,
                folder=CLIENT.folder,
                CARGO_HOME=str(common),
                CARGO_TARGET_DIR=str(common / "target"),
            )
    return program


@pytest.fixture(scope="session")
def report(
    request: pytest.FixtureRequest,
    broker: Broker,
    strict_broker: Broker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Report:
    """Return the results of the selected cases, which run when this is first asked for."""
    need_cargo()
    command = [str(built()), *selected(request, test_fe2o3_amqp.__name__)]
    folder = tmp_path_factory.mktemp("fe2o3_amqp")
    return run(command, folder, broker=broker, strict=strict_broker)


@pytest.mark.parametrize("case", CLIENT.cases())
def test_fe2o3_amqp(case: str, report: Report) -> None:
    report.check(case)


def test_every_case_of_fe2o3_amqp_is_known_here() -> None:
    """A case that is written in another form would never be reported."""
    assert len(CLIENT.cases()) == CLIENT.written() > 0
