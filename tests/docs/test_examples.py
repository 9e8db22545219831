"""Each command and program of the documents runs, and prints what its page says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

import pytest

from tests.docs.page import INCLUDED, blocks, faults, first_commands
from tests.docs.visit import Visit
from tests.interop.broker_process import ROOT
from tests.interop.conftest import not_available

BY_TUTORIAL_TEST: Final = "docs/spark/"
"""Pages whose examples start Spark: tests/spark/test_tutorial.py runs them."""

WITHOUT_SPARK: Final = {"docs/spark/iceberg.md": "pyiceberg"}
"""Pages there whose examples run on DuckDB, and the package that they need."""

PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES: Final = [page.relative_to(ROOT).as_posix() for page in PAGES]


@pytest.mark.parametrize("name", NAMES)
def test_every_block_runs_or_says_why_not(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not list(faults(text)), name
    for block in blocks(text):
        for line in block.text.splitlines():
            if included := INCLUDED.match(line):
                file = ROOT / included["file"]
                assert file.is_file(), f"{name}: {file}"
                section = included["section"]
                assert not section or f"--8<-- [start:{section}]" in file.read_text(), line


@pytest.mark.parametrize(
    "name", [name for name in NAMES if BY_TUTORIAL_TEST not in name or name in WITHOUT_SPARK]
)
def test_examples(name: str, tmp_path: Path) -> None:
    text = (ROOT / name).read_text()
    found = list(blocks(text))
    if all(block.language != "console" or block.is_read_only for block in found):
        return
    if importlib.util.find_spec("proton") is None:
        not_available("python-qpid-proton is not installed: no example with it")
    if importlib.util.find_spec(needed := WITHOUT_SPARK.get(name, "proton")) is None:
        not_available(f"{needed} is not installed: no example with it")
    for block in found:
        if block.reason:
            print(f"{name}:{block.line}: not run: {block.reason}")
    visit = Visit(tmp_path, name)
    try:
        for command in first_commands(text):
            visit.run(command)
        for block in found:
            visit.follow(block)
    finally:
        visit.end()
