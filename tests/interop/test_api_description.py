"""The description of the API, used by other programs: a generator of clients, and a fuzzer."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.http.api.table import endpoints
from tests.interop.broker_process import ROOT, BrokerProcess, environment
from tests.interop.conftest import not_available
from tests.support.caches import installation, note_installed

pytestmark = pytest.mark.requirement("OPS-01")

SECONDS = 120

SETTINGS = "[http]\nport = 0\njms = true\n"

PROGRAM = Path(__file__).with_name("generated_client.py")

CHECKS = """
# 501 is the answer to an operation that an entity does not have
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 501]
"""

EXCLUDED = "positive_data_acceptance"
"""Requests may obey the schema and still be refused, such as one for messages of no queue."""

ENDLESS = "/events$"
"""The path of a stream that does not end, which the fuzzer would read for ever."""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Yield a broker with the API, whose store is in memory."""
    process = BrokerProcess(tmp_path, settings=SETTINGS)
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0


@pytest.fixture(scope="module")
def clients() -> str:
    """Return the Python that has the generator and the fuzzer, in an environment of their own."""
    pins = ROOT / "requirements-api-clients.txt"
    with installation("api-clients", [pins]) as (folder, missing):
        python = folder / "environment" / "bin" / "python"
        if missing:
            venv.create(folder / "environment", clear=True)
            pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
            install = [*pip, "--require-hashes", "--no-compile", "-r", str(pins)]
            done = subprocess.run(install, capture_output=True, text=True)
            if done.returncode:
                not_available(f"the generator and the fuzzer cannot be installed: {done.stderr}")
            note_installed(folder)
    return str(python)


def run(*program: str, folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *program],
        cwd=folder,
        env=environment(PYTHONPATH=str(folder)),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_a_generated_client_works(api: BrokerProcess, clients: str, tmp_path: Path) -> None:
    # the generator would format its output
    (tmp_path / "generator.yaml").write_text("post_hooks: []\n")
    options = ["--meta", "none", "--output-path", "broker_client", "--fail-on-warning"]
    options += ["--config", "generator.yaml"]
    description = f"{api.http_url}/openapi.json"
    generated = run(
        *("-m", "openapi_python_client", "generate", "--url", description, *options),
        folder=tmp_path,
        python=clients,
    )
    assert generated.returncode == 0, generated.stdout + generated.stderr
    used = run(str(PROGRAM), api.http_url, folder=tmp_path, python=clients)
    assert used.stdout == "done\n", used.stderr


def test_every_response_is_as_described(api: BrokerProcess, clients: str, tmp_path: Path) -> None:
    """Requests that obey the schemas, and requests that do not, by properties of the fuzzer."""
    (tmp_path / "schemathesis.toml").write_text(CHECKS)
    found = run(
        *("-m", "schemathesis.cli", "run", f"{api.http_url}/openapi.json"),
        *("--url", api.http_url, "--seed", "1", "--max-examples", "3"),
        *("--exclude-checks", EXCLUDED, "--exclude-path-regex", ENDLESS, "--no-color"),
        folder=tmp_path,
        python=clients,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    tried = len([each for each in endpoints() if not re.search(ENDLESS, each.path)])
    assert tried == len(endpoints()) - 1
    assert f"Selected: {tried}/{len(endpoints())}" in found.stdout, found.stdout
    assert f"Tested: {tried}" in found.stdout, found.stdout
