"""`jms-broker serve`: read the settings, then run a broker until a signal stops it.

This module imports neither typer nor anything else that only a command line needs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from broker.settings import Settings

CONFIG_VARIABLE: Final = "JMS_BROKER_CONFIG"

OPTIONS: Final = {
    "--config": "config",
    "--bind": "bind",
    "--port": "port",
    "--store": "store",
    "--shard": "shard",
}
"""The options of `serve`; each takes a value. A test compares them with those that typer knows."""

Server = Callable[["Settings", str | None, Callable[[], "Settings"]], Coroutine[None, None, None]]
"""The function that runs a broker; it gets settings, their file if any, and how to reread them."""

EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2


def plain_options(arguments: Sequence[str]) -> dict[str, str] | None:
    """Return the options by name if all are plainly written, else None: typer must parse them."""
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
    """Run a broker with `options` until a signal stops it; with shards, a process for each.

    Exit the process with status 2 if the settings are wrong, 1 if the store or the address fails.
    """
    from broker.settings import SettingsError, load_settings
    from storage.api import LeadershipError, StoreError

    file = options.get("config") or os.environ.get(CONFIG_VARIABLE)
    shard = options.get("shard")
    chosen = {name: value for name, value in options.items() if name not in ("config", "shard")}
    load_all = partial(load_settings, Path(file) if file else None, **chosen)

    def load() -> Settings:
        return load_all().of_shard(shard)

    try:
        settings = load_all()
        if settings.shard and shard is None:
            _supervise(settings)
        settings = settings.of_shard(shard)
    except SettingsError as error:
        _fail(str(error), EXIT_USAGE)
    try:
        _run_loop(load_server()(settings, file, load))
    except SettingsError as error:  # settings that are wrong only by the users file, for instance
        _fail(str(error), EXIT_USAGE)
    except LeadershipError as error:
        if not settings.ha.enabled:
            _fail(str(error), EXIT_FAILURE)
        _stand_by_anew(str(error))
    except StoreError as error:
        _fail(str(error), EXIT_FAILURE)
    except OSError as error:
        _fail(f"cannot listen on {error.filename}: {error.strerror}", EXIT_FAILURE)


def _supervise(settings: Settings) -> NoReturn:
    """Run the shards of `settings`, and exit the process when they have ended."""
    # a broker without shards is spared the module
    from broker.cli.supervisor import supervise

    sys.exit(supervise(settings))


def load_server() -> Server:
    """Return `broker.serving.serve`, imported without rich.

    Structlog would import rich, 4 MiB, for tracebacks in colour.
    """
    hidden = "rich" not in sys.modules
    if hidden:
        sys.modules["rich"] = None  # type: ignore[assignment]  # makes `import rich` fail
    try:
        from broker.serving import serve
    finally:
        if hidden:
            del sys.modules["rich"]
    return serve


def _run_loop(serving: Coroutine[None, None, None]) -> None:
    """Run `serving` on uvloop if it is installed, else on asyncio."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serving)
    else:
        uvloop.run(serving)


def _stand_by_anew(reason: str) -> NoReturn:
    """Replace this process by a new one of the same command, which stands by.

    A leader that was superseded has messages and locks in memory that are no longer so: it does not
    go on with any of them.
    """
    print(f"jms-broker: {reason}: standing by", file=sys.stderr, flush=True)
    sys.stdout.flush()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # the last one ignored them at its end
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - no shell is needed


def _fail(text: str, status: int) -> NoReturn:
    for line in text.splitlines():
        print(f"jms-broker: {line}", file=sys.stderr)
    sys.exit(status)
