"""A copy of the broker's sources that runs interpreted, into which bugs are put one by one."""

from __future__ import annotations

import compileall
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

from tests.scenario.mutations import Mutation, copy_to, mutated

COPIED: Final = ("broker", "storage", "jms_broker.py", "pyproject.toml")


class PatchedSources:
    """The copy, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        copy_to(folder, COPIED)
        # compiled once for all bugs; by hashes, since a file that is patched and mended again may
        # have the size and the second of its modification that it had before
        compileall.compile_dir(
            folder, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH, maxlevels=20
        )

    @contextmanager
    def patched(self, mutation: Mutation | None) -> Iterator[None]:
        """Have the bug in the sources meanwhile; None for none."""
        if mutation is None:
            yield
            return
        file = self.folder / mutation.path
        whole = file.read_text()
        file.write_text(mutated(mutation, whole))
        try:
            yield
        finally:
            file.write_text(whole)
