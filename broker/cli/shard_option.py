"""The option --shard: which shard of the settings a command is about.

A command that talks to a broker has it in place of --url: the shard's URL counts as the variable
JMS_BROKER_URL would. The settings are those of the file that JMS_BROKER_CONFIG names, or --config
where a command has that option.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.commands import ARGUMENTS
from broker.cli.ending import EXIT_USAGE, fail
from broker.cli.named_brokers import URL_VARIABLE, variables_set
from broker.cli.serve import CONFIG_VARIABLE

if TYPE_CHECKING:
    from broker.settings import Settings

OPTION: Final = "--shard"

Shard = Annotated[
    str | None,
    typer.Option(help="The shard, if the settings have some.", show_default=False),
]
"""The option of a command that reads the settings itself."""


def settings_of_shard(config: Path | None, name: str | None) -> Settings:
    """Return the settings of the shard of that name; an error ends the command."""
    from broker.settings import SettingsError, load_settings

    try:
        return load_settings(config).of_shard(name)
    except SettingsError as error:
        fail("; ".join(str(error).splitlines()), EXIT_USAGE)


def _choose(typed: typer.Context, name: str | None) -> str | None:
    """Let the URL of the shard `name` count for a command; demand a name if it needs one."""
    arguments: list[str] = typed.meta.get(ARGUMENTS, [])
    if name is None:
        if not typed.resilient_parsing:
            _demand_name(typed, arguments)
        return None
    if _typed("--url", arguments) is not None:
        fail(f"{OPTION} names a broker of the settings, --url another one: give one", EXIT_USAGE)
    config = _typed("--config", arguments) or os.environ.get(CONFIG_VARIABLE)
    if not config:
        fail(f"{OPTION} {name}: set {CONFIG_VARIABLE} to the file with the settings", EXIT_USAGE)
    from broker.cli.healthcheck import url_of_settings_in

    url = url_of_settings_in(settings_of_shard(Path(config), name))
    typed.with_resource(variables_set({URL_VARIABLE: url}))
    return name


def _demand_name(typed: typer.Context, arguments: Sequence[str]) -> None:
    """End a command that would talk to the broker of this machine, if that has shards."""
    is_chosen = _typed("--url", arguments) is not None or os.environ.get(URL_VARIABLE)
    config = os.environ.get(CONFIG_VARIABLE)
    needs_url = any(
        each.envvar == URL_VARIABLE and each.default is not None for each in typed.command.params
    )
    if is_chosen or not config or not needs_url or not has_shards(Path(config)):
        return
    settings_of_shard(Path(config), None)


def has_shards(config: Path) -> bool:
    """Return whether a settings file has shards; one that cannot be read has none."""
    # without pydantic, which takes longer than most commands
    from broker.settings_files import UnreadableFile, read_files

    try:
        return bool(read_files(config).values.get("shard"))
    except UnreadableFile:
        return False  # a command that talks to a broker has not needed the file so far


def _typed(option: str, arguments: Sequence[str]) -> str | None:
    """Return the value of an option as it was typed, None if it was not."""
    for number, each in enumerate(arguments):
        name, separator, value = each.partition("=")
        if name == option:
            return value if separator else "".join(arguments[number + 1 : number + 2])
    return None


ShardAsUrl = Annotated[
    str | None,
    typer.Option(
        OPTION,
        is_eager=True,  # ahead of --url, for which it sets the variable
        callback=_choose,
        help=f"The broker: this shard of the settings that {CONFIG_VARIABLE} names.",
        show_default=False,
    ),
]
"""The option of a command that talks to a broker."""
