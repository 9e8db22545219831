"""Apache Qpid JMS against the broker: every JUnit test of qpid_jms/ as a test of its own.

Maven runs once, with exactly the JUnit tests that were selected here; its results are then reported
test by test. Ids, English names and requirements are read from the Java source, so that they are
known before anything runs.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest
from _pytest.mark import ParameterSet

from tests.interop.broker_process import PASSWORD, USER, Broker
from tests.interop.secured_broker import SecuredBroker

pytestmark = pytest.mark.slow

PROJECT: Final = Path(__file__).parent / "qpid_jms"
SOURCES: Final = PROJECT / "src" / "test" / "java" / "interop"
REPORTS: Final = PROJECT / "target" / "surefire-reports"
RUN_SECONDS: Final = 900
MAVEN_OPTS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Maven runs for seconds only: thorough compilation would cost more than it gains."""

JUNIT_TEST: Final = re.compile(
    r"    @Test\n"
    r'    @DisplayName\("(?P<name>.*)"\)\n'
    r'(?P<tags>(?:    @Tag\(".*"\)\n)*)'
    r"    void (?P<method>\w+)\("
)
TAG: Final = re.compile(r'@Tag\("(.*)"\)')


class Verdict:
    """JUnit's result of one test; `problem` and `skipped` are None if it passed."""

    def __init__(self, *, problem: str | None, skipped: str | None) -> None:
        self.problem: Final = problem
        self.skipped: Final = skipped


def junit_tests() -> Iterator[ParameterSet]:
    """Yield `Class#method` of every JUnit test, with its English name and its requirements."""
    for source in sorted(SOURCES.glob("*Test.java")):
        for found in JUNIT_TEST.finditer(source.read_text(encoding="utf-8")):
            marks = [pytest.mark.requirement(tag) for tag in TAG.findall(found["tags"])]
            name = f"{source.stem}: {found['name']}"
            yield pytest.param(f"{source.stem}#{found['method']}", marks=marks, id=name)


def selected(request: pytest.FixtureRequest) -> list[str]:
    """Return the JUnit tests that this run of pytest selects."""
    return [
        str(item.callspec.params["junit_test"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test_qpid_jms.__name__
    ]


@pytest.fixture(scope="session")
def verdicts(
    request: pytest.FixtureRequest,
    maven: str,
    broker: Broker,
    strict_broker: Broker,
    secured_broker: SecuredBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Verdict]:
    """Return the results of the selected JUnit tests, which run when this is first asked for."""
    output = tmp_path_factory.mktemp("maven") / "output.txt"
    tests = ",".join(selected(request))
    others = [
        f"-Dbroker.strict.url={strict_broker.url}",
        f"-Dbroker.secured.asking={secured_broker.tls_url()}",
        f"-Dbroker.secured.demanding={secured_broker.tls_url(listener='demanding')}",
        f"-Dbroker.secured.folder={secured_broker.folder}",
    ]
    found = run_maven([maven, *others, f"-Dtest={tests}"], url=broker.url, output=output)
    if not found:
        pytest.fail(f"Maven ran no test:\n{output.read_text()[-5000:]}", pytrace=False)
    return found


def run_maven(command: list[str], *, url: str, output: Path) -> dict[str, Verdict]:
    """Run `mvn test`, alone in its folder, and return the result of each test."""
    with (PROJECT / "pom.xml").open() as lock, output.open("w") as file:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for report in REPORTS.glob("TEST-*.xml"):
            report.unlink()
        account = [f"-Dbroker.user={USER}", f"-Dbroker.password={PASSWORD}"]
        quiet = ["--quiet", "--batch-mode", f"-Dbroker.url={url}", *account]
        _wait([*command, *quiet, "test"], file.fileno())
        reports = REPORTS.glob("TEST-*.xml")
        return {test: verdict for report in reports for test, verdict in read(report)}


def _wait(command: list[str], output: int) -> None:
    """Run Maven to its end. Its reports say whether tests failed, not its exit code."""
    process = subprocess.Popen(
        command,
        cwd=PROJECT,
        env={"MAVEN_OPTS": MAVEN_OPTS} | os.environ,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    try:
        process.wait(timeout=RUN_SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_phase(maven: str, phase: str, *, url: str, folder: Path, **properties: str) -> None:
    """Run one JUnit method that is part of a test of pytest; fail if it fails.

    `phase` is its class and its name; `properties` are the JVM's, with `_` for a dot.
    """
    output = folder / f"{phase}.txt"
    command = [
        maven,
        f"-Dtest={phase}",
        "-Djunit.jupiter.execution.timeout.testable.method.default=60 s",
        *(f"-D{key.replace('_', '.')}={value}" for key, value in properties.items()),
    ]
    found = run_maven(command, url=url, output=output)
    assert list(found) == [phase], output.read_text()[-3000:]
    assert found[phase].problem is None, found[phase].problem


def read(report: Path) -> Iterator[tuple[str, Verdict]]:
    """Yield the name and the result of every test in one surefire report."""
    for case in ET.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}#{case.get('name', '')}"
        problems = [*case.iter("failure"), *case.iter("error")]
        problem = f"{problems[0].get('message')}\n{problems[0].text}" if problems else None
        skipped = case.find("skipped")
        reason = None if skipped is None else skipped.get("message", "no reason given")
        yield name, Verdict(problem=problem, skipped=reason)


@pytest.mark.parametrize("junit_test", list(junit_tests()))
def test_qpid_jms(junit_test: str, verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts.get(junit_test)
    if verdict is None:
        pytest.fail(f"{junit_test} did not run", pytrace=False)
    if verdict.problem is not None:
        pytest.fail(verdict.problem, pytrace=False)
    if verdict.skipped is not None:
        pytest.skip(verdict.skipped)


def test_every_junit_test_is_known_here() -> None:
    """A test that JUNIT_TEST does not match would never be reported."""
    written = sum(
        source.read_text(encoding="utf-8").count("@Test\n") for source in SOURCES.glob("*.java")
    )
    assert len(list(junit_tests())) == written > 0
