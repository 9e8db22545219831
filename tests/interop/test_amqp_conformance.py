"""The wheel `amqp-conformance` alone in an environment: it needs no broker, and judges this one."""

from __future__ import annotations

import ast
import json
import re
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from broker import __version__
from config.conformance_wheel import CARRIED, CODEC, HARNESS, build_wheel, carried, carry, make_tree
from tests.conformance.harness import all_cases
from tests.conformance.jms_api.catalogue import SOURCES
from tests.interop.broker_process import PASSWORD, ROOT, USER, BrokerProcess
from tests.interop.empty_environment import EmptyEnvironment
from tests.support.quick_logins import quick_administrator

pytestmark = pytest.mark.slow

NAME: Final = "amqp-conformance"
PROJECT: Final = ROOT / "config" / NAME / "pyproject.toml"

FINDING: Final = """
from importlib.util import find_spec
print([name for name in ("broker", "storage", "tests") if find_spec(name)])
"""

OTHER: Final = "other-1.0-py3-none-any.whl"

CLAUSES: Final = ("2.2", "2.6.3", "4", "jms:7")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built in a folder that has another one, and a folder `tree`."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / OTHER).touch()
    (folder / "tree" / "kept").mkdir(parents=True)
    return build_wheel(folder)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> EmptyEnvironment:
    """Return an environment with the wheel and what it requires."""
    environment = EmptyEnvironment(tmp_path_factory.mktemp("alone"), wheel)
    environment.add(NAME)
    return environment


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield a broker with a user, who may log in by SCRAM, and WebSocket."""
    folder = tmp_path_factory.mktemp("judged")
    user = quick_administrator(folder, USER, PASSWORD)
    web = '[[listener]]\nname = "web"\nkind = "ws"\nport = 0\n'
    process = BrokerProcess(folder, settings=f"{user}{web}")
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0


def needed(file: Path) -> Iterator[str]:
    """Yield the modules of `broker.amqp` that a module imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "broker.amqp":
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("broker.amqp."):
            yield str(node.module).removeprefix("broker.amqp.")


def test_the_modules_that_it_carries_are_those_that_it_needs() -> None:
    left = {
        name
        for file in HARNESS.rglob("*.py")
        if not file.name.startswith("test_") and file.name != "conftest.py"
        for name in needed(file)
    }
    found: set[str] = set()
    while left:
        name = left.pop()
        found.add(name)
        left |= set(needed(ROOT / "broker" / "amqp" / f"{name}.py")) - found
    assert found == set(CODEC)


def test_the_page_names_the_modules_that_it_carries() -> None:
    page = (ROOT / "docs" / "conformance" / f"{NAME}.md").read_text()
    _, _, behind = page.partition("in their imports alone:")
    paragraph = behind.strip().partition("\n\n")[0]
    assert tuple(re.findall(r"`(\w+)`", paragraph)) == CODEC


def test_nothing_else_in_its_folder_is_touched(wheel: Path) -> None:
    assert {file.name for file in wheel.parent.iterdir()} == {wheel.name, OTHER, "tree"}
    assert (wheel.parent / "tree" / "kept").is_dir()


def test_a_tree_is_made_in_an_empty_folder_alone(tmp_path: Path) -> None:
    make_tree(tmp_path / "tree")
    assert (tmp_path / "tree" / "amqp_conformance" / "jms_api" / "runner.py").is_file()
    with pytest.raises(FileExistsError, match="tree is not empty"):
        make_tree(tmp_path / "tree")


def test_the_wheel_has_one_package(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {
        "amqp_conformance",
        f"amqp_conformance-{__version__}.dist-info",
    }
    held = {name.removeprefix("amqp_conformance/") for name in names}
    assert {f"codec/{name}.py" for name in CODEC} | {"report_page.css", "report_page.js"} <= held
    assert {f"jms_api/java/src/jmsapi/{file.name}" for file in SOURCES.glob("*.java")} <= held
    assert not [name for name in held if "test_" in name or "conftest" in name]


IMPORTS: Final = [
    pytest.param("from broker.amqp.types import Map", "from {}.types import Map", id="a module"),
    pytest.param("    from broker.amqp import types", "    from {} import types", id="indented"),
    pytest.param("from broker import __version__", "from {} import __version__", id="the version"),
    pytest.param("from .harness import case", "from .harness import case", id="relative"),
]


@pytest.mark.parametrize(("line", "expected"), IMPORTS)
def test_an_import_is_turned_to_the_carried_codec(line: str, expected: str) -> None:
    assert carried(line) == expected.format(CARRIED)


@pytest.mark.parametrize("line", ["import broker.amqp", "from tests.support import x"])
def test_an_import_that_it_does_not_carry_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="does not carry"):
        carried(line)


def test_imports_of_packages_within_are_turned(tmp_path: Path) -> None:
    module = tmp_path / "within" / "module.py"
    module.parent.mkdir()
    module.write_text("from broker.amqp.types import Map\n")
    carry(tmp_path)
    assert module.read_text() == f"from {CARRIED}.types import Map\n"


def test_it_requires_what_the_broker_requires() -> None:
    """A library that both use has the same bounds in both."""
    projects = [tomllib.loads(file.read_text()) for file in (PROJECT, ROOT / "pyproject.toml")]
    own, ours = (
        {each.name: each.specifier for each in map(Requirement, project["project"]["dependencies"])}
        for project in projects
    )
    assert own == {name: ours[name] for name in own}
    assert projects[0]["project"]["requires-python"] == projects[1]["project"]["requires-python"]


def test_it_lists_all_cases_without_a_broker_package(
    alone: EmptyEnvironment, tmp_path: Path
) -> None:
    assert alone.run("python", "-c", FINDING, cwd=tmp_path).stdout == "[]\n"
    assert alone.run(NAME, "--version", cwd=tmp_path).stdout == f"{NAME} {__version__}\n"
    done = alone.run(NAME, "--list", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(all_cases())


def test_it_judges_this_broker(
    alone: EmptyEnvironment, judged: BrokerProcess, tmp_path: Path
) -> None:
    chosen = [word for clause in CLAUSES for word in ("--clause", clause)]
    files = ["--json", "report.json", "--html", "report.html", "--junit", "report.xml"]
    login = ["--user", USER, "--password", PASSWORD, "--mechanism", "SCRAM-SHA-512"]
    done = alone.run(NAME, judged.url, *login, *chosen, *files, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["harness"] == f"{NAME} {__version__}"
    assert content["broker"]["product"] == "jms-broker"
    verdicts = [case["verdict"] for case in content["cases"]]
    assert verdicts.count("passed") > 50
    assert "failed" not in verdicts
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    compared = alone.run(NAME, "compare", "report.json", cwd=tmp_path)
    assert compared.stdout.startswith(f"jms-broker {__version__}  {len(verdicts)} cases")


def test_it_judges_within_websocket(
    alone: EmptyEnvironment, judged: BrokerProcess, tmp_path: Path
) -> None:
    url = judged.listeners["web"].replace("//", f"//{USER}:{PASSWORD}@")
    done = alone.run(NAME, url, "--case", "channels_keep_within_our_channel_max", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
