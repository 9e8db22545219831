"""The Spring Boot application of docs/start/spring-boot.md, over `amqps` with a login by SCRAM."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

import pytest

from tests.interop.foreign_client import ForeignClient, install
from tests.interop.secured_broker import (
    APPLICATIONS,
    SCRAM_512,
    STORE_PASSWORD,
    SecuredBroker,
)

pytestmark = pytest.mark.slow

CLIENT: Final = ForeignClient(
    "spring_boot", sources="src/main/java/hello/*.java", needs=["java", "javac", "mvn"]
)
PINNED: Final = ["pom.xml", "src/main/java/hello/HelloApplication.java"]
ANSWER_SECONDS: Final = 60
JVM: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
"""The application runs for seconds only, see junit.py."""


def built() -> Path:
    """Return the application as a jar; Maven builds it if a source has changed."""
    with CLIENT.place(pinned=PINNED) as (place, missing):
        if missing:
            shutil.copytree(CLIENT.folder, place, dirs_exist_ok=True)
            install(["mvn", "--quiet", "--batch-mode", "package"], place)
    return place / "target" / "hello.jar"


def pass_on(output: Iterable[str], lines: SimpleQueue[str]) -> None:
    """Put each line of `output` into `lines`, and an empty one at its end."""
    for line in output:
        lines.put(line)
    lines.put("")


def lines_until(wanted: str, command: list[str], folder: Path) -> list[str]:
    """Return what a program prints until the line `wanted`, or until it ends; then end it."""
    lines: SimpleQueue[str] = SimpleQueue()
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        output = process.stdout
        assert output is not None
        reader = Thread(target=pass_on, args=(output, lines))
        reader.start()
        printed: list[str] = []
        try:
            while wanted not in printed and (line := lines.get(timeout=ANSWER_SECONDS)):
                printed.append(line.rstrip())
        except Empty:
            printed.append(f"no line in {ANSWER_SECONDS} s")
        finally:
            process.terminate()
            reader.join()
    return printed


@pytest.mark.requirement("SEC-01")
@pytest.mark.requirement("SEC-02")
def test_spring_boot_with_scram(secured_broker: SecuredBroker, tmp_path: Path) -> None:
    CLIENT.need()
    trust = f"transport.trustStoreLocation={secured_broker.file('trusted.p12')}"
    secret = f"transport.trustStorePassword={STORE_PASSWORD}"
    settings = {
        "remote-url": f"{secured_broker.tls_url()}?{trust}&{secret}",
        "username": SCRAM_512,
        "password": APPLICATIONS[SCRAM_512],
    }
    (tmp_path / "application.properties").write_text(
        "".join(f"amqphub.amqp10jms.{name}={value}\n" for name, value in settings.items())
    )
    command = ["java", *JVM, "-jar", str(built())]
    printed = lines_until("received a book", command, tmp_path)
    assert printed[-1] == "received a book", printed[-30:]
