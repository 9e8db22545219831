"""Options and hooks of all suites: the build under test, requirements and attacks with tests.

Without options the checkout's .py files are tested. `--compiled` tests the installed wheel instead,
and refuses to run if its modules are not compiled.
"""

import gc
import importlib
import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.workermanage import WorkerController

from tests.support.scheduling import DIST, FewSparks, in_order, is_by_file

TESTS = Path(__file__).parent
ROOT = TESTS.parent
REQUIREMENT_IDS = TESTS / "requirement_ids.txt"
ATTACK_IDS = TESTS / "attack_ids.txt"
NO_HARM = "no_harm"
"""The fixture of tests that prove that an attack harms no healthy client."""

COMPILED_SUFFIXES = (".so", ".pyd")
A_COMPILED_MODULE = "broker.amqp.connection"

settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

tested_requirements = pytest.StashKey[Counter[str]]()
tested_attacks = pytest.StashKey[Counter[str]]()
harmless_attacks = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--crashes", action="store_true", help="every row of the crash matrix")
    parser.addoption("--compiled", action="store_true", help="test the installed, compiled wheel")
    parser.addoption(
        "--requirements", action="store_true", help="list the requirements and attacks with tests"
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


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage meanwhile: there is none, and all objects would be looked at for it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count tests by id; with `--compiled`, deselect tests that need interpreted code."""
    config.stash[tested_requirements] = _counts(items, "requirement", r"[A-Z]{3}-\d\d")
    config.stash[tested_attacks] = _counts(items, "attack", r"[CAZSR]\d\d?")
    beside = [
        item for item in items if isinstance(item, pytest.Function) and NO_HARM in item.fixturenames
    ]
    config.stash[harmless_attacks] = _counts(beside, "attack", r"[CAZSR]\d\d?")
    if config.getoption("--compiled"):
        unseen = [item for item in items if item.get_closest_marker("incompatible_with_mypyc")]
        config.hook.pytest_deselected(items=unseen)
        items[:] = [item for item in items if item not in unseen]
    if is_by_file(config):
        items[:] = in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FewSparks | None:
    """Return the scheduler of `--dist loadfile`, None for another: xdist has its own."""
    return FewSparks(config, log) if is_by_file(config) else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell a process how tests are distributed."""
    node.workerinput[DIST] = node.config.getoption(DIST)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Spare the garbage collector the ten thousand tests; list the ids with tests, if asked."""
    config = session.config
    if not config.getoption("--requirements"):
        # each full collection of a test would look at all of them, for seconds
        gc.freeze()
        return
    requirements = _missing(REQUIREMENT_IDS, config.stash[tested_requirements])
    attacks = _missing(ATTACK_IDS, config.stash[tested_attacks])
    harmful = _missing(ATTACK_IDS, config.stash[harmless_attacks], told=False)
    problems = [
        *([f"no test names {', '.join(requirements)}"] if requirements else []),
        *([f"no test names the attacks {', '.join(attacks)}"] if attacks else []),
        *([f"no test with `{NO_HARM}` names the attacks {', '.join(harmful)}"] if harmful else []),
    ]
    if problems:
        pytest.exit("; ".join(problems), returncode=1)
    pytest.exit("all requirements and attacks have tests", returncode=0)


def pytest_sessionfinish() -> None:
    postgres = sys.modules.get("tests.support.postgres")
    if postgres is not None:
        postgres.stop_servers()


def _counts(items: Iterable[pytest.Item], marker: str, pattern: str) -> Counter[str]:
    """Return the number of tests for each id that `marker` names; ids match `pattern`."""
    counts: Counter[str] = Counter()
    for item in items:
        for mark in item.iter_markers(marker):
            for name in mark.args:
                if not re.fullmatch(pattern, name):
                    raise pytest.UsageError(f"{item.nodeid}: {marker} {name!r} is not {pattern}")
            counts.update(mark.args)
    return counts


def _missing(file: Path, counts: Counter[str], *, told: bool = True) -> list[str]:
    """Return the ids in `file` without a test; print all ids with their tests if `told`."""
    wanted = file.read_text().split()
    for name in sorted({*wanted, *counts}, key=_in_order) if told else ():
        print(f"{name}  {counts[name] or 'NO TEST'}")
    return [name for name in wanted if not counts[name]]


def _in_order(name: str) -> tuple[str, int]:
    """Return what ids are sorted by: R2 comes before R10."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :])


def _place() -> str:
    try:
        module = importlib.import_module(A_COMPILED_MODULE)
    except ModuleNotFoundError as error:
        return f"not importable: {error}"
    return str(module.__file__)


def _compiled() -> bool:
    return _place().endswith(COMPILED_SUFFIXES)
