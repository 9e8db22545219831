"""The JUnit tests of qpid_jms/, which run in a JVM of their own, started without Maven.

Maven builds them once for all checkouts of the user, and again if a source changes. Ids, English
names and requirements are read from the Java source, so that they are known before anything runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest
from _pytest.mark import ParameterSet

from tests.interop.broker_process import PASSWORD, USER
from tests.interop.foreign_client import ForeignClient, install

CLIENT: Final = ForeignClient(
    "qpid_jms", sources="src/test/java/**/*.java", needs=["java", "javac", "mvn"]
)
SOURCES: Final = CLIENT.folder / "src"
RUN_SECONDS: Final = 900
JVM: Final = ("-Xmx768m", "-XX:+UseSerialGC")
QUICK: Final = "-XX:TieredStopAtLevel=1"
"""A JVM runs for seconds only, and thorough compilation costs more than it gains: except for TLS
and the hashes of passwords, which take twice the CPU time without it."""

LAUNCHER: Final = "org.junit.platform.console.ConsoleLauncher"
PATIENCE: Final = "junit.jupiter.execution.timeout.testable.method.default"
"""The property with the maximum time of a test; junit-platform.properties has the usual one."""

JUNIT_TEST: Final = re.compile(
    r"    @Test\n"
    r'    @DisplayName\("(?P<name>.*)"\)\n'
    r'(?P<tags>(?:    @Tag\(".*"\)\n)*)'
    r"    void (?P<method>\w+)\("
)
TAG: Final = re.compile(r'@Tag\("(.*)"\)')
NOTHING: Final[Mapping[str, str]] = {}


class Verdict:
    """JUnit's result of one test; `problem` and `skipped` are None if it passed."""

    def __init__(self, *, problem: str | None, skipped: str | None) -> None:
        self.problem: Final = problem
        self.skipped: Final = skipped


def sources() -> list[Path]:
    """Return the classes whose tests are tests of pytest as well."""
    return sorted((SOURCES / "test" / "java" / "interop").glob("*Test.java"))


def junit_tests() -> Iterator[ParameterSet]:
    """Yield `Class#method` of every JUnit test, with its English name and its requirements."""
    for source in sources():
        for found in JUNIT_TEST.finditer(source.read_text(encoding="utf-8")):
            marks = [pytest.mark.requirement(tag) for tag in TAG.findall(found["tags"])]
            name = f"{source.stem}: {found['name']}"
            yield pytest.param(f"{source.stem}#{found['method']}", marks=marks, id=name)


def cases_of(classes: Iterable[str], *, but: Iterable[str]) -> list[str]:
    """Return `Class#method` of every JUnit test of `classes`, except those that `but` names."""
    wanted, left_out = set(classes), set(but)
    found = [str(each.values[0]) for each in junit_tests()]
    assert left_out <= set(found), left_out - set(found)
    return [name for name in found if name.partition("#")[0] in wanted and name not in left_out]


class JUnit:
    """The built tests; `run` runs some of them, `phase` one that is part of a test of pytest."""

    def __init__(self, place: Path) -> None:
        classes, jars = place / "target" / "test-classes", place / "target" / "class-path.txt"
        self._class_path: Final = f"{classes}{os.pathsep}{jars.read_text().strip()}"
        self._full_names: Final = {
            file.stem: ".".join(file.relative_to(classes).with_suffix("").parts)
            for file in classes.rglob("*.class")
        }

    def run(
        self, tests: Iterable[str], folder: Path, *, url: str, properties: Mapping[str, str]
    ) -> dict[str, Verdict]:
        """Run the tests, each `Class#method`, and return the result of each; fail without any.

        `folder` gets the reports and the output, `properties` are further ones of the JVM.
        """
        reports, printed = folder / "reports", folder / "printed.txt"
        given = {
            "broker.url": url,
            "broker.user": USER,
            "broker.password": PASSWORD,
            **properties,
        }
        quick = [] if "s://" in url else [QUICK]
        command = [
            *("java", *JVM, *quick, *(f"-D{name}={value}" for name, value in given.items())),
            *("-cp", self._class_path, LAUNCHER, "execute", "--disable-banner"),
            *("--details=none", f"--reports-dir={reports}"),
            *(f"--select-method={self._full_name(test)}" for test in tests),
        ]
        with printed.open("w") as output:
            # the reports say whether tests failed, not the exit code
            subprocess.run(
                command,
                cwd=folder,
                stdout=output,
                stderr=output,
                timeout=RUN_SECONDS,
                check=False,
            )
        found = {test: each for file in reports.glob("*.xml") for test, each in read(file)}
        if not found:
            pytest.fail(f"JUnit ran no test:\n{printed.read_text()[-5000:]}", pytrace=False)
        return found

    def phase(
        self, test: str, folder: Path, *, url: str, properties: Mapping[str, str] = NOTHING
    ) -> None:
        """Run one JUnit test; fail if it fails."""
        own = folder / test
        own.mkdir()
        found = self.run([test], own, url=url, properties={PATIENCE: "60 s", **properties})
        assert list(found) == [test]
        assert found[test].problem is None, found[test].problem

    def _full_name(self, test: str) -> str:
        """Return the name of a test with the package of its class."""
        name, _, method = test.partition("#")
        return f"{self._full_names[name]}#{method}"


def built() -> JUnit:
    """Return the tests; Maven builds them if a source has changed."""
    pinned = [file for file in sorted(SOURCES.rglob("*")) if file.is_file()]
    names = ["pom.xml", *(str(file.relative_to(CLIENT.folder)) for file in pinned)]
    with CLIENT.place(pinned=names) as (place, missing):
        if missing:
            shutil.copytree(SOURCES, place / "src", dirs_exist_ok=True)
            shutil.copy(CLIENT.folder / "pom.xml", place)
            install(["mvn", "--quiet", "--batch-mode", "test-compile"], place)
    return JUnit(place)


def read(report: Path) -> Iterator[tuple[str, Verdict]]:
    """Yield the name and the result of every test in one report."""
    for case in ET.parse(report).getroot().iter("testcase"):
        method = case.get("name", "").removesuffix("()")
        name = f"{case.get('classname', '').rpartition('.')[2]}#{method}"
        problems = [*case.iter("failure"), *case.iter("error")]
        problem = f"{problems[0].get('message')}\n{problems[0].text}" if problems else None
        skipped = case.find("skipped")
        reason = None if skipped is None else skipped.text or "no reason given"
        yield name, Verdict(problem=problem, skipped=reason)
