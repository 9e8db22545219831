"""The page and the picture of the architecture name each package of the broker."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
BROKER: Final = ROOT / "broker"
PAGE: Final = (ROOT / "docs" / "design" / "architecture.md").read_text()
PICTURE: Final = (ROOT / "docs" / "images" / "architecture.svg").read_text()

PACKAGES: Final = {file.parent.name for file in BROKER.glob("*/__init__.py")}
MODULES: Final = {file.name for file in BROKER.glob("[!_]*.py")}


def test_the_picture_has_each_package_and_no_other() -> None:
    texts = " ".join(re.findall(r"<text [^>]*>(.*?)</text>", PICTURE))
    assert set(re.findall(r"(\w+)/", texts)) == PACKAGES | {"storage"}


def test_the_page_has_each_package_and_no_other() -> None:
    table = PAGE.partition("| package | contents |")[2].partition("\n\n")[0]
    cells = [line.split(" | ")[0] for line in table.splitlines()[2:]]
    named = {name for cell in cells for name in re.findall(r"`(\w+)/`", cell)}
    # the rows of files beside broker/ name that folder
    assert named == PACKAGES | {"broker"}


def test_the_page_has_each_module() -> None:
    # the settings of listeners, TLS, OAuth, audit and HTTP are one entry
    table = PAGE.partition("| package | contents |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+\.py)`", table))
    settings = {name for name in MODULES if name.endswith("_settings.py")}
    assert MODULES - settings - named == set()
    assert "`*_settings.py`" in table
