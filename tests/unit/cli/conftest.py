"""Commands are called in the process of the tests: typer makes them once."""

from tests.support.typer_commands import make_commands_once

make_commands_once()
