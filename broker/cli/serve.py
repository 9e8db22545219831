"""`jms-broker serve`: settings, then a broker until it is told to stop.

Imports neither typer nor anything else that only a command line needs.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from broker.settings import Settings

CONFIG_VARIABLE: Final = "JMS_BROKER_CONFIG"

OPTIONS: Final = {"--config": "config", "--bind": "bind", "--port": "port", "--store": "store"}
"""Each of these takes a value. A test holds them to those that typer knows."""

Server = Callable[["Settings", str | None, Callable[[], "Settings"]], Coroutine[None, None, None]]
"""Runs a broker with settings, from a file if any, and what reads them once more."""

EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2


def plain_options(arguments: Sequence[str]) -> dict[str, str] | None:
    """The options by name where they are written out plainly, else None: typer must judge."""
    chosen: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, separator, value = rest.pop(0).partition("=")
        if name not in OPTIONS:
            return None
        if not separator:
            if not rest or rest[0].startswith("-"):
                return None
            value = rest.pop(0)
        chosen[OPTIONS[name]] = value
    return chosen


def run(options: Mapping[str, str | None]) -> None:
    """Serve with `options`, until a signal. Ends the process where the settings are wrong."""
    from broker.settings import SettingsError, load_settings
    from storage.api import StoreError

    file = options.get("config") or os.environ.get(CONFIG_VARIABLE)
    chosen = {name: value for name, value in options.items() if name != "config"}
    load = partial(load_settings, Path(file) if file else None, **chosen)
    try:
        settings = load()
    except SettingsError as error:
        _fail(str(error), EXIT_USAGE)
    try:
        _run_loop(load_server()(settings, file, load))
    except SettingsError as error:  # such as need a look at the users file
        _fail(str(error), EXIT_USAGE)
    except StoreError as error:
        _fail(str(error), EXIT_FAILURE)
    except OSError as error:
        place = error.filename or f"{settings.bind}:{settings.port}"
        _fail(f"cannot listen on {place}: {error.strerror}", EXIT_FAILURE)


def load_server() -> Server:
    """`broker.serving.serve`. Structlog would import rich, 4 MiB, for tracebacks in colour."""
    hidden = "rich" not in sys.modules
    if hidden:
        sys.modules["rich"] = None  # type: ignore[assignment]  # what import takes for "not there"
    try:
        import_module("broker.net.log")  # which `serve` wants later
        from broker.serving import serve
    finally:
        if hidden:
            del sys.modules["rich"]
    return serve


def _run_loop(serving: Coroutine[None, None, None]) -> None:
    """Run `serving` on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serving)
    else:
        uvloop.run(serving)


def _fail(text: str, status: int) -> NoReturn:
    for line in text.splitlines():
        print(f"jms-broker: {line}", file=sys.stderr)
    sys.exit(status)
