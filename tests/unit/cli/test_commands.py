"""The help of every command: a type is shown only for an option that takes a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from broker.cli.application import application
from broker.settings import OTHER_VARIABLES, SECRETS, variable_names


def paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every command and group: the words that select it."""
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from paths(each, (*path, name))


@pytest.mark.parametrize(
    "path", list(paths(typer.main.get_command(application))), ids=lambda path: " ".join(path)
)
def test_a_flag_has_no_type(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(application, [*path, "--help"]).output
    assert "--help" in shown
    assert "bool" not in shown.lower()


def test_an_option_with_a_value_has_one() -> None:
    shown = CliRunner().invoke(application, ["send", "--help"]).output
    (line,) = (line for line in shown.splitlines() if "--url" in line)
    assert "str" in line.lower() or "text" in line.lower()


def variables(command: Any) -> set[str]:
    """Return the names of all environment variables that the options of a command read."""
    found: set[str] = set()
    for parameter in command.params:
        names = parameter.envvar
        found |= {names} if isinstance(names, str) else set(names or ())
    return found.union(*map(variables, getattr(command, "commands", {}).values()))


def test_no_variable_of_an_option_is_an_unknown_setting() -> None:
    found = variables(typer.main.get_command(application))
    assert "JMS_BROKER_TOKEN" in found
    prefixed = {name for name in found if name.startswith("JMS_BROKER_")}
    assert prefixed <= variable_names() | OTHER_VARIABLES | {f"{name}_FILE" for name in SECRETS}
