"""Run the simulation on sources with a deliberate bug, which this process alone sees.

    python -m tests.scenario.mutated_simulation NAME 300

runs up to 300 seeds with the bug of that name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from tests.scenario.mutations import MUTATIONS, ROOT, Mutation, mutated


class MutatedModule(SourceFileLoader):
    """Loads the module of one bug, with the bug."""

    def __init__(self, mutation: Mutation) -> None:
        name = mutation.path.removesuffix(".py").replace("/", ".")
        super().__init__(name, str(ROOT / mutation.path))
        self._mutation: Final = mutation

    def get_code(self, fullname: str) -> CodeType:
        """Compile the source with the bug; bytecode of the source without it is left alone."""
        file = self.get_filename(fullname)
        return self.source_to_code(mutated(self._mutation, Path(file).read_text()), file)


class OneModule(MetaPathFinder):
    """Finds the module of one loader, and leaves all others to Python."""

    def __init__(self, loader: MutatedModule) -> None:
        self._loader: Final = loader

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification that Python would find, with the loader in it."""
        if fullname != self._loader.name:
            return None
        found = PathFinder.find_spec(fullname, path, target)
        assert found is not None, f"there is no module {fullname}"
        found.loader = self._loader
        return found


def main() -> int:
    """Return what the simulation returns: 1 if a seed fails, else 0."""
    (mutation,) = (each for each in MUTATIONS if each.name == sys.argv[1])
    loader = MutatedModule(mutation)
    sys.meta_path.insert(0, OneModule(loader))
    simulation = import_module("tests.scenario.simulation")
    assert loader.name in sys.modules, f"the simulation does not import {loader.name}"
    sys.argv = sys.argv[1:]
    status: int = simulation.main()
    return status


if __name__ == "__main__":
    sys.exit(main())
