"""`jms-broker config`: the settings that a broker here would have, and the schema of all settings.

No broker is asked: `jms-broker reload --dry-run` says how a running broker differs from them.
"""

from __future__ import annotations

import json as encoding
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer
from pydantic import BaseModel, SecretStr

from broker.cli.audit import Config
from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES, EXIT_USAGE, fail
from broker.cli.managing import Json
from broker.cli.printing import print_records
from broker.settings import Settings, SettingsError, load_with_places
from broker.settings_errors import SettingPath, dotted, without_secrets

config = Commands(
    help="Show settings, and where they come from. No broker is asked.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

BOUNDS: Final = {
    "ge": "minimum",
    "le": "maximum",
    "gt": "exclusiveMinimum",
    "lt": "exclusiveMaximum",
}
"""JSON Schema's words for what pydantic leaves as it is on types with a validator of their own."""


@config.command()
def show(
    config: Config = None,
    origin: Annotated[
        bool,
        typer.Option(
            "--origin", help="Also print the source of each: a file, a variable, or defaults."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Print the settings with which `jms-broker serve` would start here, without secrets."""
    try:
        settings, places = load_with_places(config)
    except SettingsError as error:
        fail(str(error), EXIT_USAGE)
    rows = [
        {"setting": dotted(path), "value": value, "origin": places.of(path)}
        for path, value in values_of(settings)
    ]
    columns = ("setting", "value", *(["origin"] if origin else []))
    chosen = [{name: row[name] for name in columns} for row in rows]
    print_records(chosen, columns, as_json=json)


@config.command()
def schema() -> None:
    """Print the JSON Schema of the settings file; editors check and complete TOML with it."""
    typer.echo(encoding.dumps(settings_schema(), indent=2))


def values_of(settings: BaseModel, at: SettingPath = ()) -> Iterator[tuple[SettingPath, object]]:
    """Yield the path and the value of each setting; of lists of tables those that are set."""
    of_list = bool(at) and isinstance(at[-1], int)
    for name in type(settings).model_fields:
        if of_list and name not in settings.model_fields_set:
            continue
        value: object = getattr(settings, name)
        path = (*at, name)
        if isinstance(value, BaseModel):
            yield from values_of(value, path)
        elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
            for number, each in enumerate(value):
                yield from values_of(each, (*path, number))
        else:
            yield path, plain(value)


def plain(value: object) -> object:
    """Return a value as JSON has it, without a secret in it."""
    if isinstance(value, SecretStr):
        return "***"
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, int | float | bool) else str(value)


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of all settings."""
    made = _standard(Settings.model_json_schema())
    assert isinstance(made, dict)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _standard(part: object) -> object:
    """Return a part of a schema with the words of the standard for bounds."""
    if isinstance(part, dict):
        return {BOUNDS.get(name, name): _standard(value) for name, value in part.items()}
    return [_standard(each) for each in part] if isinstance(part, list) else part
