"""The embedded broker as users have it: a wheel in an empty environment, the page's examples."""

from __future__ import annotations

import importlib.util
import shutil
import statistics
from pathlib import Path
from typing import Final

import pytest

from tests.docs.page import blocks
from tests.interop.broker_process import ROOT
from tests.interop.conftest import not_available
from tests.interop.empty_environment import EmptyEnvironment, wheel

pytestmark = pytest.mark.slow

FIRST_S: Final = 0.3
FURTHER_S: Final = 0.02

LIBRARIES: Final = "import time, asyncio, pydantic_settings; print(time.process_time())"
"""A program that imports what most of the start is spent on."""

LIBRARIES_MAX: Final = 3.0
"""On a slow machine: the CPU time of the first start, as a multiple of that program's."""

RUNS: Final = 9
RUNS_MIN: Final = 3
"""After so many runs, further ones are only for a start that has not been fast yet."""

PAGE: Final = ROOT / "docs" / "testing.md"

TIMES: Final = """
from time import perf_counter, process_time

def now():
    return perf_counter(), process_time()

def told(began):
    print(*(after - before for before, after in zip(began, now())))

began = now()
from broker import Broker
with Broker() as first:
    told(began)
    for _ in range(9):
        began = now()
        with Broker() as further:
            told(began)
            assert further.url != first.url
"""

OWN_TEST: Final = """
import broker, storage

def test_own_modules():
    assert (broker.PRICE, storage.SHELVES) == (3, 4)

def test_with_a_broker(amqp_url):
    assert amqp_url
"""

ON_ITS_OWN: Final = """
import asyncio, socket, sys
from broker import Broker

async def main():
    async with Broker(users={"ada": "engine"}) as broker:
        reader, writer = await asyncio.open_connection(*broker.url.removeprefix("amqp://").split(":"))
        writer.write(b"AMQP\\x03\\1\\0\\0")
        assert await reader.readexactly(8) == b"AMQP\\x03\\1\\0\\0"
        writer.close()
        broker.clock.advance(hours=1)
        assert broker.messages("orders") == broker.settled("orders") == []

asyncio.run(main())
print([name for name in ("structlog", "rich", "typer", "pytest", "proton") if name in sys.modules])
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> EmptyEnvironment:
    """Return an environment with the wheel alone."""
    built = wheel(tmp_path_factory.mktemp("wheel"))
    environment = EmptyEnvironment(tmp_path_factory.mktemp("bare"), built)
    environment.add("jms-broker")
    return environment


@pytest.fixture(scope="module")
def for_tests(tmp_path_factory: pytest.TempPathFactory) -> EmptyEnvironment:
    """Return an environment of `jms-broker[test]`, xdist and the example's client library."""
    if importlib.util.find_spec("proton") is None:
        not_available("python-qpid-proton is not installed: no example with it")
    built = wheel(tmp_path_factory.mktemp("wheel"))
    environment = EmptyEnvironment(tmp_path_factory.mktemp("for-tests"), built)
    environment.add("jms-broker[test]", "pytest-xdist", "python-qpid-proton")
    return environment


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """Return a folder with the files of the page's examples."""
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    return tmp_path


def test_it_starts_fast(
    bare: EmptyEnvironment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The limits are for the CPU time of the best start.

    Other work on the machine makes a start longer, by its caches also in CPU time, never shorter.
    A machine that is slow as a whole is told by the time of the libraries.
    """
    slowness: list[float] = []
    first: list[tuple[float, ...]] = []
    further: list[tuple[float, ...]] = []

    def is_fast() -> bool:
        least_first = min(cpu for _, cpu in first)
        return (
            least_first < max(FIRST_S, LIBRARIES_MAX * min(slowness))
            and min(cpu for _, cpu in further) < FURTHER_S
        )

    for number in range(RUNS):
        if number >= RUNS_MIN and is_fast():
            break
        done = bare.run("python", "-c", TIMES, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        slowness.append(float(bare.run("python", "-c", LIBRARIES, cwd=tmp_path).stdout))
        lines = [tuple(float(part) for part in line.split()) for line in done.stdout.splitlines()]
        first.append(lines[0])
        further += lines[1:]
    with capsys.disabled():
        print(f"\nthe first broker, all imports included: {milliseconds(first)}")
        print(f"each further one: {milliseconds(further)}")
    assert is_fast()


def milliseconds(times: list[tuple[float, ...]]) -> str:
    wall, cpu = ([each * 1000 for each in column] for column in zip(*times, strict=True))
    return (
        f"{statistics.median(wall):.1f} ms ({min(wall):.1f} to {max(wall):.1f}),"
        f" of CPU {statistics.median(cpu):.1f} ({min(cpu):.1f} to {max(cpu):.1f})"
    )


def test_it_runs_from_the_wheel_alone_and_loads_little(
    bare: EmptyEnvironment, tmp_path: Path
) -> None:
    done = bare.run("python", "-W", "error", "-c", ON_ITS_OWN, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_the_wheel_alone_brings_no_pytest(bare: EmptyEnvironment, tmp_path: Path) -> None:
    """Otherwise the extra `test` would prove nothing."""
    done = bare.run("python", "-m", "pytest", "--version", cwd=tmp_path)
    assert "No module named pytest" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [pytest.param([], id="one after the other"), pytest.param(["-n", "2"], id="in parallel")],
)
def test_the_example_of_a_python_service(
    for_tests: EmptyEnvironment, examples: Path, arguments: list[str]
) -> None:
    done = for_tests.run("python", "-m", "pytest", *arguments, cwd=examples)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_the_installed_plugin_stops_no_project_that_has_modules_of_our_names(
    for_tests: EmptyEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "broker.py").write_text("PRICE = 3\n")
    (tmp_path / "storage").mkdir()
    (tmp_path / "storage" / "__init__.py").write_text("SHELVES = 4\n")
    (tmp_path / "test_own.py").write_text(OWN_TEST)
    done = for_tests.run("python", "-m", "pytest", "-W", "error", cwd=tmp_path)
    assert "1 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert f"the module 'broker' is {tmp_path / 'broker.py'}, and hides" in done.stdout


def test_the_example_of_a_java_test(
    bare: EmptyEnvironment, examples: Path, tmp_path_factory: pytest.TempPathFactory, maven: str
) -> None:
    project = tmp_path_factory.mktemp("java")
    sources = project / "src" / "test" / "java"
    sources.mkdir(parents=True)
    shutil.copy(examples / "OrdersTest.java", sources)
    shutil.copy(ROOT / "tests" / "interop" / "qpid_jms" / "pom.xml", project)
    command = [maven, "--quiet", "--batch-mode", "test"]
    done = bare.run("jms-broker", "embed", "--", *command, cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = (project / "target" / "surefire-reports").glob("TEST-*.xml")
    assert 'tests="1" errors="0" skipped="0" failures="0"' in report.read_text()
