"""The commands of typer, made once for each process of the tests."""

from __future__ import annotations

import functools

import typer.main
import typer.testing


def make_commands_once() -> None:
    """Have typer's `CliRunner` keep the commands of an application that it has made.

    It makes them anew for each call, which takes 50 ms for those of jms-broker.
    """
    vars(typer.testing)["_get_command"] = functools.cache(typer.main.get_command)
