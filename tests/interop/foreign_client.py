"""Client libraries of other languages: how they are installed, and what their programs report.

Each has a program of its own with a list of cases, each written `shows("name", "RCV-02",` with its
requirements, so that pytest knows them before anything runs. The program is run once, with the
names of the selected cases, and prints a JSON object per line: `case`, and `problem`, which is null
if the case passed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import pytest
from _pytest.mark import ParameterSet

from tests.interop.broker_process import PASSWORD, USER, Broker
from tests.interop.conftest import not_available
from tests.interop.secured_broker import SecuredBroker
from tests.support.caches import installation, note_installed

INSTALL_SECONDS: Final = 600
RUN_SECONDS: Final = 180

CASE: Final = re.compile(r'\bshows\("(?P<name>[^"]+)", "(?P<requirements>[A-Z0-9 -]*)"')
DEFINITION: Final = re.compile(r"\b(?:def|func|function) shows\(")


class ForeignClient:
    """One client library; `folder` has its program with the cases, and its lock files."""

    def __init__(self, name: str, *, sources: str, needs: Iterable[str]) -> None:
        self.name: Final = name
        self.folder: Final = Path(__file__).parent / name
        self.needs: Final = tuple(needs)
        self._sources: Final = sources

    def text(self) -> str:
        """Return the text of the program, all of its files."""
        return "\n".join(
            file.read_text(encoding="utf-8") for file in sorted(self.folder.glob(self._sources))
        )

    def cases(self) -> list[ParameterSet]:
        """Return the cases, each with its requirements as marks."""
        return [
            pytest.param(
                found["name"],
                marks=[pytest.mark.requirement(name) for name in found["requirements"].split()],
                id=found["name"],
            )
            for found in CASE.finditer(self.text())
        ]

    def written(self) -> int:
        """Return the number of cases, in whatever form they are written."""
        text = self.text()
        return len(re.findall(r"\bshows\(", text)) - len(DEFINITION.findall(text))

    def need(self) -> None:
        """Skip if the machine lacks a tool; fail if nothing may be missing."""
        for tool in self.needs:
            if shutil.which(tool) is None:
                not_available(f"{tool} is not installed: no test with {self.name}")

    def place(self, *, pinned: Iterable[str]) -> AbstractContextManager[tuple[Path, bool]]:
        """Return a context with the folder for what the files `pinned` of `folder` name.

        It gives the folder, and whether something is to be installed in it (`installation`).
        """
        return installation(self.name, [self.folder / name for name in pinned])


def install(command: list[str], place: Path, *, folder: Path | None = None, **env: str) -> None:
    """Run `command`, which installs into `place`; note in `place` that it is installed.

    It runs in `folder`, by default in `place`. Fail if it fails.
    """
    done = subprocess.run(
        command,
        cwd=folder or place,
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}", pytrace=False)
    note_installed(place)


class Report:
    """The results of one run of a program: for each case a problem, None if it passed."""

    def __init__(self, problems: Mapping[str, str | None], printed: Path) -> None:
        self._problems: Final = problems
        self._printed: Final = printed

    def check(self, case: str) -> None:
        """Fail unless `case` ran without a problem."""
        if case not in self._problems:
            tail = self._printed.read_text(errors="replace")[-5000:]
            pytest.fail(f"{case!r} did not run. The program printed:\n{tail}", pytrace=False)
        problem = self._problems[case]
        if problem is not None:
            pytest.fail(problem, pytrace=False)


def selected(request: pytest.FixtureRequest, test: str) -> list[str]:
    """Return the cases that this run of pytest selects for the test function named `test`."""
    return [
        str(item.callspec.params["case"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test
    ]


def run(
    command: list[str],
    folder: Path,
    *,
    broker: Broker,
    strict: Broker,
    secured: SecuredBroker | None = None,
    variables: Mapping[str, str] | None = None,
) -> Report:
    """Run a program to its end, for RUN_SECONDS at most; its output stays in `folder`.

    `variables` are added to its environment. The program's lines say whether a case passed, not
    its exit code.
    """
    lines = folder / "cases.txt"
    printed = folder / "printed.txt"
    environment = {
        "BROKER_URL": broker.url,
        "BROKER_STRICT_URL": strict.url,
        "BROKER_USER": USER,
        "BROKER_PASSWORD": PASSWORD,
        **(variables or {}),
    }
    if secured is not None:
        environment |= {
            "BROKER_SECURED_URL": secured.tls_url(),
            "BROKER_SECURED_DEMANDING": secured.tls_url(listener="demanding"),
            "BROKER_SECURED_FOLDER": str(secured.folder),
        }
    with lines.open("w") as output, printed.open("w") as errors:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | environment,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            process.wait(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            errors.write(f"not finished after {RUN_SECONDS} seconds\n")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    said = [json.loads(line) for line in lines.read_text().splitlines() if line.startswith("{")]
    return Report({line["case"]: line["problem"] for line in said}, printed)
