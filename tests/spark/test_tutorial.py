"""The tutorial, docs/spark/tutorial.md, works as it is printed: settings, commands and program."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.interop.broker_process import ROOT, BrokerProcess, command
from tests.interop.proton_peer import Peer
from tests.spark import session

pytestmark = [pytest.mark.requirement("PIP-73"), pytest.mark.usefixtures("quick_drivers")]

PAGE: Final = ROOT / "docs" / "spark" / "tutorial.md"
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED_URL: Final = "amqp://localhost:5672"
PRINTED_HTTP: Final = "http://localhost:8161"
SERVE: Final = "jms-broker serve"
MINUTES: Final = 10


def blocks(language: str) -> list[str]:
    """Return the tutorial's fenced blocks in that language."""
    found = [text for named, text in BLOCK.findall(PAGE.read_text()) if named == language]
    assert found, f"no {language} in the tutorial"
    return found


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Yield a broker with the tutorial's settings, but on free ports."""
    settings, _ = blocks("toml")
    process = BrokerProcess(tmp_path, settings=settings.replace("port = 8161", "port = 0"))
    yield process
    if process.running:
        process.stop()


def here(text: str, broker: BrokerProcess) -> str:
    """Return the printed text with this broker's addresses in it."""
    for line in broker.log.read_text().splitlines():
        if found := re.match(r"ready .* http=(\S+)", line):
            text = text.replace(PRINTED_HTTP, found[1])
    assert PRINTED_HTTP not in text
    return text.replace(PRINTED_URL, broker.url)


def on_the_path(folder: Path) -> Path:
    """Return a folder with `jms-broker` and `python` as the tests need them."""
    programs = folder / "bin"
    programs.mkdir()
    for name, words in (("jms-broker", command()), ("python", [sys.executable])):
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)
    return programs


@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_the_tutorial(broker: BrokerProcess, tmp_path: Path, engine: str) -> None:
    """On DuckDB, the tutorial is what it prints without the Spark program."""
    jobs = blocks("toml")[1]
    assert jobs.startswith("# jobs.toml\n")
    (tmp_path / "jobs.toml").write_text(f'engine = "{engine}"\n{here(jobs, broker)}')
    for program in blocks("python"):
        name = re.match(r"# (\w+\.py)\n", program)
        assert name is not None, "the first line names the file"
        (tmp_path / name[1]).write_text(here(program, broker))
    lines = "".join(blocks("sh")).splitlines()
    assert any(line.startswith(SERVE) for line in lines)
    left_out = (SERVE,) if engine == "spark" else (SERVE, "python ", "jms-broker send orders first")
    typed = "\n".join(line for line in lines if not line.startswith(left_out))
    script = tmp_path / "typed.sh"
    script.write_text(f"set -ex\n{here(typed, broker)}\n")
    environment = {
        **os.environ,
        **session.given(tmp_path),
        # as a user has it, with the code that Spark generates
        "SPARK_SUBMIT_OPTS": session.flags(),
        "PATH": f"{on_the_path(tmp_path)}:{os.environ['PATH']}",
        "JMS_BROKER_URL": broker.url,
    }
    done = subprocess.run(
        ["bash", str(script)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60 * MINUTES,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert "all checks hold" in done.stdout
    assert (tmp_path / "report" / "report.html").exists()
    with Peer(broker.url) as peer:
        peer.opened()
        assert len(peer.bodies("again")) == 3
        loud = [str(body) for body in peer.bodies("loud")]
    assert loud == (["FIRST", "SECOND", "THIRD"] if engine == "spark" else [])
