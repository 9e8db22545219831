"""One Spark for all tests of a process, brokers for it, and the treatment of a missing Java."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import pytest

# Appended at the end, so that the checkout does not hide an installed wheel. tests/conftest.py
# comes too late for this file if pytest is given this folder alone.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.interop.broker_process import BrokerProcess
from tests.interop.conftest import not_available

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_amqp.engines.engine import Engine

HERE: Final = Path(__file__).resolve().parent
DURABLE: Final = 'store = "sqlite:///store.db"\n'


CRASH_ROW: Final = "crash row"
"""Name of the property with which a test reports a line of the crash matrix' table."""


def missing() -> str | None:
    """Return why no test here can run, or None."""
    if shutil.which("java") is None:
        return "java is not installed: no test with Spark"
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: no test with Spark"
    return None


class NotCollected(pytest.Module):
    """A module of tests that cannot be imported, and is skipped with the reason."""

    def collect(self) -> NoReturn:
        not_available(missing() or "")


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    if missing() is not None:
        module: pytest.Module = NotCollected.from_parent(parent, path=module_path)
        return module
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark all tests as slow Spark tests; deselect most of the crash matrix without --crashes.

    A row of that matrix takes half a minute.
    """
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.slow)
    if not config.getoption("--crashes"):
        left = [item for item in items if item.get_closest_marker("whole_matrix") is not None]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    reports = [each for some in terminalreporter.stats.values() for each in some]
    told = [
        text
        for each in reports
        for name, text in getattr(each, "user_properties", ())
        if name == CRASH_ROW and each.when == "teardown"
    ]
    if told:
        terminalreporter.section("crash matrix: acked, sink rows, lost, duplicates")
        for line in told:
            terminalreporter.write_line(line)
        if not config.getoption("--crashes"):
            terminalreporter.write_line("more rows with --crashes (make crashes)")


@pytest.fixture(scope="session")
def quick_drivers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make the archive of classes with which Spark starts quickly from the second time on."""
    from tests.spark.driver import archive_classes

    archive_classes(tmp_path_factory.mktemp("classes"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield pytest's one session. A test that changes its settings restores them."""
    from tests.spark import session

    started = session.start(tmp_path_factory.mktemp("spark"))
    yield started
    started.stop()


@pytest.fixture
def duckdb_engine() -> Iterator[Engine]:
    """Yield an engine of DuckDB."""
    from pyspark_amqp.engines.duckdb_engine import duckdb_engine as opened

    with opened() as engine:
        yield engine


@pytest.fixture(params=["duckdb", "spark"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return each engine of the jobs in turn."""
    if request.param == "duckdb":
        found: Engine = request.getfixturevalue("duckdb_engine")
        return found
    from pyspark_amqp.engines.spark_engine import SparkEngine

    return SparkEngine(request.getfixturevalue("spark"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield the broker that most tests share: its store is a file, and it needs no login."""
    process = BrokerProcess(tmp_path_factory.mktemp("broker"), settings=DURABLE)
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Yield a broker of this test alone, which may stop it."""
    folder = tmp_path / "broker"
    folder.mkdir()
    process = BrokerProcess(folder, settings=DURABLE)
    yield process
    if process.running:
        process.stop()
