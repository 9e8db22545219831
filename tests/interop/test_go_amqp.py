"""Azure's go-amqp, the AMQP client of Go, against the broker: every case of go_amqp/ as a test."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.interop.broker_process import Broker
from tests.interop.foreign_client import ForeignClient, Report, install, run, selected
from tests.interop.secured_broker import SecuredBroker

pytestmark = pytest.mark.slow

CLIENT: Final = ForeignClient("go_amqp", sources="*.go", needs=["go"])
SOURCES: Final = ["go.mod", "go.sum", "harness.go", "hello.go", "cases.go", "secured.go"]


def built() -> Path:
    """Return the program, built with exactly the versions that go.sum names."""
    with CLIENT.place(pinned=SOURCES) as (place, missing):
        program = place / "cases"
        if missing:
            fetched = place.parent / "go"
            install(
                # the cases need no fast code: Go's own packages are compiled, too
                ["go", "build", "-gcflags=all=-N -l", "-ldflags=-w", "-o", str(program), "."],
                place,
                folder=CLIENT.folder,
                GOFLAGS="-mod=readonly -modcacherw -buildvcs=false",
                GOMODCACHE=str(fetched / "mod"),
                GOCACHE=str(fetched / "build"),
                GOTOOLCHAIN="local",
                CGO_ENABLED="0",
            )
    return program


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
    command = [str(built()), *selected(request, test_go_amqp.__name__)]
    folder = tmp_path_factory.mktemp("go_amqp")
    return run(command, folder, broker=broker, strict=strict_broker, secured=secured_broker)


@pytest.mark.parametrize("case", CLIENT.cases())
def test_go_amqp(case: str, report: Report) -> None:
    report.check(case)


def test_every_case_of_go_amqp_is_known_here() -> None:
    """A case that is written in another form would never be reported."""
    assert len(CLIENT.cases()) == CLIENT.written() > 0
