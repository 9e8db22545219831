"""The page of a queue's parts names the files that know the whole queue, and no others."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
BROKER: Final = ROOT / "broker"
PAGE: Final = ROOT / "docs" / "design" / "queue.md"
IMPORTS_QUEUE: Final = re.compile(
    r"^ *from broker\.routing\.queues\.queue import Queue$", re.MULTILINE
)


def test_the_page_names_the_files_that_import_the_queue() -> None:
    section = PAGE.read_text().partition("\n## Who takes the whole queue\n")[2]
    named = {
        file
        for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        for file in re.findall(r"`(.+?)`", row)
    }
    importing = {
        str(file.relative_to(BROKER))
        for file in BROKER.rglob("*.py")
        if IMPORTS_QUEUE.search(file.read_text())
    }
    assert named == importing
