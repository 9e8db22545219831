"""The commands that a process imports: the typed one only, and all of them for the help."""

from __future__ import annotations

import subprocess
import sys

import pytest

from broker.cli.application import COMMANDS

MODULES = {name: each.place.partition(":")[0] for name, each in COMMANDS.items()}

BY_ALL = {"broker.cli.context", "broker.cli.messages"}
"""Imported by each command, which may take the broker of a context; that needs their options."""

TYPED = [
    pytest.param(["--version"], [], id="no command"),
    pytest.param(["lease", "--help"], ["lease"], id="a table of commands"),
    pytest.param(["doctor", "--help"], ["doctor"], id="a command"),
    pytest.param(["lase"], [], id="a command that is not there"),
    pytest.param(["--help"], list(COMMANDS), id="the help of all"),
]


def imported_by(arguments: list[str]) -> set[str]:
    """Return the modules that a command has imported at its end, without a terminal."""
    program = f"""
import atexit, sys
from broker.cli.application import application
atexit.register(lambda: print(*sys.modules, file=sys.stderr, sep=chr(10)))
application({arguments!r}, prog_name="jms-broker")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return set(done.stderr.splitlines())


@pytest.mark.parametrize(("arguments", "names"), TYPED)
def test_a_command_imports_no_other(arguments: list[str], names: list[str]) -> None:
    imported = imported_by(arguments) & set(MODULES.values())
    assert imported - BY_ALL == {MODULES[name] for name in names} - BY_ALL


def test_a_command_without_a_terminal_does_without_rich() -> None:
    imported = imported_by(["node", "list", "--url", "amqp://127.0.0.1:1"])
    assert "broker.cli.printing" in imported
    assert not {each for each in imported if each.partition(".")[0] == "rich"}
