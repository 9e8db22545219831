"""The folders in which the benchmark finds and keeps its files."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = Path(__file__).resolve().parent
CACHE: Final = ROOT / ".cache"


def cache_folder(name: str) -> Path:
    """Return a folder outside version control that is kept from run to run; make it if missing."""
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    return folder


class BenchError(Exception):
    """The measurement cannot be made; the text says why."""
