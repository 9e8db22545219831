"""`jms-broker doctor` as typed: stopped and running brokers, a slow disk, the bundle."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.bench.syncs import Syncs
from tests.interop.broker_process import BrokerProcess, command, environment
from tests.interop.typed import SECONDS, Client
from tests.support.ports import free_port


def doctor(
    folder: Path, *arguments: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command(), "doctor", *arguments],
        env=environment(**(variables or {})),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def levels(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the level of each code that the command printed with --json."""
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {each["code"]: each["level"] for each in found}


@pytest.mark.requirement("OPS-13")
def test_a_stopped_broker_on_a_slow_disk(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: nothing slows the disk down")
    (tmp_path / "broker.toml").write_text('store = "sqlite:///store.db"\ndisk_free_min = 1024\n')
    syncs = Syncs.of(tmp_path)
    arguments = ("--config", "broker.toml", "--json")
    try:
        before = doctor(tmp_path, *arguments, variables=syncs.environment)
        with syncs.slowed(400):
            after = doctor(tmp_path, *arguments, variables=syncs.environment)
    finally:
        syncs.close()
    assert (before.returncode, after.returncode) == (0, 1), before.stdout
    changed = {code for code, level in levels(after).items() if level != levels(before)[code]}
    assert changed == {"D04"}
    assert levels(after)["D04"] == "FAIL"


@pytest.mark.requirement("OPS-13")
def test_the_broker_that_has_the_store_is_asked(tmp_path: Path) -> None:
    port = free_port()
    settings = f'store = "sqlite:///{tmp_path}/store.db"\nport = {port}\ndisk_free_min = 1024\n'
    serve = [*command(), "serve", "--config", str(tmp_path / "broker.toml")]
    process = BrokerProcess(tmp_path, settings=settings, program=serve)
    try:
        Client(process.url).prints("send", "lonely", "x")
        bundle = ("--bundle", "bundle.zip", "--log", str(process.log))
        done = doctor(tmp_path, "--config", "broker.toml", "--json", *bundle)
        remote = doctor(tmp_path, "--url", process.url, "--json")
    finally:
        process.stop()
    stopped = doctor(tmp_path, "--config", "broker.toml", "--json")
    for each in (done, remote, stopped):
        assert each.returncode == 0, each.stdout + each.stderr
    assert levels(done)["D17"] == levels(remote)["D17"] == "WARN"
    assert levels(stopped)["D17"] == levels(remote)["D05"] == "SKIP"
    assert levels(done)["D20"] == levels(stopped)["D20"] == "WARN"
    with zipfile.ZipFile(tmp_path / "bundle.zip") as written:
        assert b"ready amqp://" in written.read("broker.log")
        assert b'"messages": 1' in written.read("store.json")


@pytest.mark.requirement("OPS-13")
@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        pytest.param(["--url", "amqp://127.0.0.1:1"], 5, "Connection refused", id="no broker"),
        pytest.param(["--url", "tcp://h"], 2, "tcp:// is not AMQP", id="a wrong URL"),
        pytest.param(["--config", "none.toml"], 2, "none.toml: No such", id="no settings"),
        pytest.param(["--log", "x"], 2, "give --bundle", id="a log without a bundle"),
        pytest.param(["--bundle", "/none/x"], 1, "/none/x: No such", id="no place for it"),
    ],
)
def test_errors(tmp_path: Path, arguments: list[str], status: int, expected: str) -> None:
    done = doctor(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert expected in done.stderr
