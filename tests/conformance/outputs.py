"""The files that a run or a comparison writes: checked before it, written one by one after it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from .asked import CannotRun

Write = Callable[[Path], None]


def check_outputs(files: Iterable[Path | None], *, read: Iterable[Path] = ()) -> None:
    """Raise CannotRun if one of `files` could not be written, is named twice, or is one of `read`.

    None is no file. A device, such as /dev/null, may be named twice.
    """
    inputs = [file.resolve() for file in read]
    found: list[Path] = []
    for file in files:
        if file is None:
            continue
        if file.resolve() in found and (file.is_file() or not file.exists()):
            raise CannotRun(f"{file}: it is named twice: each report needs a file of its own")
        if file.resolve() in inputs:
            raise CannotRun(f"{file}: it is one of the reports to be read: name another file")
        found.append(file.resolve())
        folder = file.absolute().parent
        if not folder.is_dir():
            raise CannotRun(f"{file}: there is no folder {file.parent}")
        if file.is_dir():
            raise CannotRun(f"{file}: it is a folder, not a file")
        if not os.access(file if file.exists() else folder, os.W_OK):
            raise CannotRun(f"{file}: it may not be written")


def write_outputs(outputs: Iterable[tuple[Path | None, Write]]) -> list[str]:
    """Write each file that is not None; return the errors of those that could not be written.

    A file that fails, such as on a full disk, leaves the others as they are.
    """
    errors = []
    for file, write in outputs:
        if file is None:
            continue
        try:
            write(file)
        except OSError as error:
            errors.append(f"{file}: it cannot be written: {error.strerror or error}")
    return errors
