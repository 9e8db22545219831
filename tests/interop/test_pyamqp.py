"""pyamqp, the transport of Azure's Service Bus client, against the broker: its cases as tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from tests.interop.broker_process import ROOT, Broker, BrokerProcess
from tests.interop.foreign_client import ForeignClient, Report, install, run, selected
from tests.support.token_server import token_server
from tests.support.tokens import AUDIENCE, ISSUER, TokenIssuer

pytestmark = pytest.mark.slow

CLIENT: Final = ForeignClient("pyamqp", sources="*.py", needs=[])
PINNED: Final = ["requirements.txt"]


def installed() -> Path:
    """Return a folder of packages, in exactly the versions of the lock file."""
    with CLIENT.place(pinned=PINNED) as (place, missing):
        if missing:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            lock = str(CLIENT.folder / "requirements.txt")
            into = ["--require-hashes", "--target", str(place), "--upgrade", "-r", lock]
            install([*pip, *into], place)
    return place


SETTINGS: Final = f"""
[oauth]
issuer = "{ISSUER}"
audience = "{AUDIENCE}"
jwks = "jwks.json"
"""


@pytest.fixture(scope="session")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield the variables that name a broker which takes tokens, and their issuer."""
    folder = tmp_path_factory.mktemp("token-broker")
    issuer = TokenIssuer()
    (folder / "jwks.json").write_bytes(issuer.jwks())
    process = BrokerProcess(folder, settings=SETTINGS)
    with token_server(issuer) as url:
        yield {"BROKER_TOKENS": urlsplit(process.url).netloc, "TOKEN_ISSUER": url}
    assert process.stop() == 0


@pytest.fixture(scope="session")
def report(
    request: pytest.FixtureRequest,
    broker: Broker,
    strict_broker: Broker,
    tokens: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Report:
    """Return the results of the selected cases, which run when this is first asked for."""
    CLIENT.need()
    path = os.pathsep.join([str(installed()), str(ROOT)])
    cases = selected(request, test_pyamqp.__name__)
    program = [sys.executable, "-m", "tests.interop.pyamqp.main", *cases]
    folder = tmp_path_factory.mktemp("pyamqp")
    command = ["env", f"PYTHONPATH={path}", *program]
    return run(command, folder, broker=broker, strict=strict_broker, variables=tokens)


@pytest.mark.parametrize("case", CLIENT.cases())
def test_pyamqp(case: str, report: Report) -> None:
    report.check(case)


def test_every_case_of_pyamqp_is_known_here() -> None:
    """A case that is written in another form would never be reported."""
    assert len(CLIENT.cases()) == CLIENT.written() > 0
