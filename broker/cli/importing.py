"""Commands that are imported when they are used: importing all of them takes 0.2 s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import typer.main

from broker.cli.commands import Commands


@dataclass(frozen=True)
class CommandPlace:
    """The place of a command or a table of commands, `module:name`, and the end of its help."""

    place: str
    epilog: str | None = None

    def load(self, name: str) -> Any:
        """Import the command; return it as click has it, with the name that users type."""
        module, _, attribute = self.place.partition(":")
        found = getattr(import_module(module), attribute)
        if isinstance(found, typer.Typer):
            made: Any = typer.main.get_group(found)
        else:
            alone = Commands(add_completion=False)
            alone.command(epilog=self.epilog)(found)
            made = typer.main.get_command(alone)
        made.name = name
        return made


class ImportedCommands(MutableMapping[str, Any]):
    """The commands of a group by name: those that are there, then those that have a place only."""

    def __init__(self, there: Mapping[str, Any], places: Mapping[str, CommandPlace]) -> None:
        self._found: Final[dict[str, Any]] = {**there, **places}

    def __getitem__(self, name: str) -> Any:
        found = self._found[name]
        if isinstance(found, CommandPlace):
            found = self._found[name] = found.load(name)
        return found

    def __setitem__(self, name: str, command: Any) -> None:
        self._found[name] = command

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
