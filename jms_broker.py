"""Entry point of jms-broker, which detects other modules with the names of its packages.

`broker` and `storage` are likely names of a user's own modules, and Python imports the module that
is first on `sys.path`. This module has a unique name, so that its check always runs.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

PACKAGES: Final = ("broker", "storage")
HOME: Final = Path(__file__).resolve().parent
"""The folder of this file and of the packages."""

STDERR: Final = 2
"""The highest number of a standard stream."""


class ShadowedError(ImportError):
    """Another module hides a package of jms-broker. The text says which."""


def check_names() -> None:
    """Raise ShadowedError if `broker` or `storage` is missing, or is not jms-broker's."""
    for name in PACKAGES:
        found = _place(name)
        if found is None:
            raise ShadowedError(f"the package {name!r} of jms-broker is missing in {HOME}")
        if found.resolve().parent != HOME / name:
            raise ShadowedError(
                f"the module {name!r} is {found}, and hides the package {name!r} of jms-broker in"
                f" {HOME}: rename it, or keep its folder off sys.path",
                name=name,
                path=str(found),
            )


def _place(name: str) -> Path | None:
    """Return the file that `import name` has loaded or would load; None if there is none."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        return None if loaded.__file__ is None else Path(loaded.__file__)
    found = find_spec(name)
    return None if found is None or found.origin is None else Path(found.origin)


def fill_standard_streams() -> None:
    """Open the null device in place of each of stdin, stdout and stderr that is closed.

    A file or socket would get its number: what is written to a standard stream would go there, and
    libuv ends the process when it closes such a socket. sys.stdout stays None, so that a command
    with closed output is told from one whose output is not wanted.
    """
    number = os.open(os.devnull, os.O_RDWR)
    while number <= STDERR:
        os.set_inheritable(number, True)  # to child processes, as standard streams are
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def main() -> None:
    """Run the command `jms-broker`; if a module hides its packages, report that and exit with 1."""
    fill_standard_streams()
    try:
        check_names()
    except ShadowedError as error:
        sys.stderr.write(f"jms-broker: {error}\n")
        sys.exit(1)
    from broker.cli import main as run

    try:
        run()
    finally:
        if "duckdb" in sys.modules:
            gc.unfreeze()  # DuckDB reports objects as leaks that are not freed when Python exits
        else:
            gc.freeze()  # else Python, before it exits, would search all objects for cycles


if __name__ == "__main__":
    main()
