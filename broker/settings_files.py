"""Reads the settings files: the one that is named, and those of `conf.d` beside it.

Also reads the files of environment variables such as JMS_BROKER_STORE_FILE, which have secrets.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from broker.settings_errors import FILE_SUFFIX, SettingPath

FOLDER: Final = "conf.d"
"""The folder beside a settings file with further ones; those that end with `.toml` count."""


class UnreadableFile(Exception):  # noqa: N818 - as SettingsError, which this layer does not know
    """A file cannot be read, or contradicts another source; the text says which."""


@dataclass
class WrittenSettings:
    """The settings of all files together, and the file of each one by its path."""

    values: dict[str, object] = field(default_factory=dict)
    files: dict[SettingPath, Path] = field(default_factory=dict)

    def add(self, given: Mapping[str, object], file: Path) -> None:
        """Add the settings of `file`, which win over those of earlier files.

        Tables are merged setting by setting, and lists of tables are appended to earlier ones.
        """
        self._merge(self.values, given, file, at=())

    def _merge(
        self, into: dict[str, object], given: Mapping[str, object], file: Path, *, at: SettingPath
    ) -> None:
        for name, value in given.items():
            here = (*at, name)
            present = into.get(name)
            if isinstance(value, dict):
                table = present if isinstance(present, dict) else dict[str, object]()
                into[name] = table
                self.files[here] = file
                self._merge(table, value, file, at=here)
            elif is_list_of_tables(value) and is_list_of_tables(present):
                assert isinstance(value, list)
                assert isinstance(present, list)
                for number in range(len(value)):
                    self.files[*here, len(present) + number] = file
                present.extend(value)
            else:
                into[name] = value
                self.files[here] = file


def is_list_of_tables(value: object) -> bool:
    """Return whether `value` is what `[[name]]` makes."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def read_files(config: Path) -> WrittenSettings:
    """Return the settings of `config` and of `conf.d/*.toml` beside it, in the order of names.

    Raise UnreadableFile if one of them cannot be read, or is not TOML.
    """
    written = WrittenSettings()
    for file in (config, *further_files(config)):
        written.add(_read(file), file)
    return written


def further_files(config: Path) -> list[Path]:
    """Return the files of `conf.d` beside `config`, in the order of their names."""
    try:
        # a mounted Kubernetes folder has links to files beside its own hidden folders
        return sorted(
            file
            for file in (config.parent / FOLDER).glob("*.toml")
            if not file.name.startswith(".") and file != config
        )
    except OSError as error:
        raise UnreadableFile(f"{config.parent / FOLDER}: {error.strerror}") from None


def _read(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as opened:
            return tomllib.load(opened)
    except OSError as error:
        raise UnreadableFile(f"{file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{file}: not TOML: {error}") from None


def secrets_of(environment: Mapping[str, str], secret: Collection[str]) -> dict[str, str]:
    """Return the content of the files that variables such as JMS_BROKER_STORE_FILE name.

    The keys are the variables without `_FILE`, which are in `secret`. The newline at the end of a
    file is left out. Raise UnreadableFile if a file cannot be read, or both variables are set.
    """
    names = {name.upper() for name in environment}
    found: dict[str, str] = {}
    for name, file in environment.items():
        wanted = name.upper().removesuffix(FILE_SUFFIX)
        if wanted == name.upper() or wanted not in secret:
            continue
        if wanted in names:
            raise UnreadableFile(f"{name} and {wanted} are both set: set one of them")
        try:
            found[wanted] = Path(file).read_text().removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise UnreadableFile(f"{name} = {file!r}: {reason}") from None
    return found
