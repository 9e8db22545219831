"""Options and hooks of all suites: the build under test, and the requirements with tests.

Without options the checkout's .py files are tested. `--compiled` tests the installed wheel instead,
and refuses to run if its modules are not compiled.
"""

import gc
import importlib
import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent
REQUIREMENT_IDS = Path(__file__).parent / "requirement_ids.txt"
COMPILED_SUFFIXES = (".so", ".pyd")
A_COMPILED_MODULE = "broker.amqp.connection"

settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

tested_requirements = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--crashes", action="store_true", help="every row of the crash matrix")
    parser.addoption("--compiled", action="store_true", help="test the installed, compiled wheel")
    parser.addoption(
        "--requirements", action="store_true", help="list which requirement ids have tests"
    )
    parser.addoption("--seeds", type=int, help="run so many seeds of the simulation")
    parser.addoption("--seed", type=int, help="run this seed of the simulation")
    parser.addoption("--operations", help="of --seed, only the operations of these numbers")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--compiled"):
        if not _compiled():
            raise pytest.UsageError(
                f"--compiled, but {A_COMPILED_MODULE} is {_place()}: run `make build`, and pytest"
                " as `.venv/bin/pytest` (`python -m pytest` puts the checkout first)"
            )
    else:
        sys.path.insert(0, str(ROOT))


def pytest_report_header() -> str:
    return f"broker: {'compiled' if _compiled() else 'interpreted'}, {_place()}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count tests by requirement; with `--compiled`, deselect tests that need interpreted code."""
    counts: Counter[str] = Counter()
    for item in items:
        for mark in item.iter_markers("requirement"):
            counts.update(_ids(item, mark))
    config.stash[tested_requirements] = counts
    if config.getoption("--compiled"):
        unseen = [item for item in items if item.get_closest_marker("incompatible_with_mypyc")]
        config.hook.pytest_deselected(items=unseen)
        items[:] = [item for item in items if item not in unseen]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Spare the garbage collector the ten thousand tests; list the requirements, if asked."""
    if not session.config.getoption("--requirements"):
        # each full collection of a test would look at all of them, for seconds
        gc.collect()
        gc.freeze()
        return
    counts = session.config.stash[tested_requirements]
    wanted = REQUIREMENT_IDS.read_text().split()
    for name in sorted({*wanted, *counts}):
        print(f"{name}  {counts[name] or 'NO TEST'}")
    missing = [name for name in wanted if not counts[name]]
    if missing:
        pytest.exit(f"no test names {', '.join(missing)}", returncode=1)
    pytest.exit(f"all {len(wanted)} requirements have tests", returncode=0)


def pytest_sessionfinish() -> None:
    postgres = sys.modules.get("tests.support.postgres")
    if postgres is not None:
        postgres.stop_servers()


def _ids(item: pytest.Item, mark: pytest.Mark) -> tuple[str, ...]:
    for name in mark.args:
        if not re.fullmatch(r"[A-Z]{3}-\d\d", name):
            raise pytest.UsageError(f"{item.nodeid}: requirement {name!r} is not like CON-01")
    return mark.args


def _place() -> str:
    try:
        module = importlib.import_module(A_COMPILED_MODULE)
    except ModuleNotFoundError as error:
        return f"not importable: {error}"
    return str(module.__file__)


def _compiled() -> bool:
    return _place().endswith(COMPILED_SUFFIXES)
