"""The errors of wrong settings: which one is wrong, where it comes from, and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from pydantic import ValidationError

ENVIRONMENT_PREFIX: Final = "JMS_BROKER_"
FILE_SUFFIX: Final = "_FILE"
"""Ends the name of a variable whose value is the path of a file with the value of a setting."""

DEFAULTS: Final = "defaults"
"""The source of a setting that is set nowhere."""

SECRET_WORDS: Final = ("pass", "token", "secret")
"""Parts of names whose values no error shows, also if the name is unknown."""

NEAREST: Final = 5
"""Known settings that the error of an unknown one names: all 50 would hide the right one."""

PASSWORD_PARAMETER: Final = re.compile(r"""([?&]\w*password=)[^&'"\s]*""", re.IGNORECASE)

SettingPath = tuple[int | str, ...]
"""The place of a setting among all: names of tables, indexes in lists of tables, its name."""


def shown(name: str, value: object) -> str:
    """Return the value as an error may print it: without secrets."""
    if any(word in name.lower() for word in SECRET_WORDS):
        return "***"
    return without_secrets(repr(value))


def without_secrets(text: str) -> str:
    """Return a text without the user and password of a URL in it."""
    return without_password_parameters(re.sub(r"://.*@", "://***@", text))


def without_password_parameters(text: str) -> str:
    """Return a text without the passwords among the parameters of a URL in it."""
    return PASSWORD_PARAMETER.sub(r"\1***", text)


def unknown(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Return the error for an unknown setting: at most NEAREST of the `known`, nearest first.

    `prefix` is what all names begin with: it makes none of them nearer than another.
    """
    bare = {each.removeprefix(prefix): each for each in sorted(known)}
    wanted = name.upper().removeprefix(prefix) if prefix else name
    likely = [bare[each] for each in get_close_matches(wanted, bare, n=NEAREST)]
    others = [bare[each] for each in get_close_matches(wanted, bare, n=NEAREST, cutoff=0.0)]
    if not likely:
        return f"unknown setting; the nearest are {', '.join(others)}"
    also = f" Near it are also {', '.join(likely[1:])}" if likely[1:] else ""
    return f"unknown setting; did you mean {likely[0]}?{also}"


class Places:
    """Finds the source of each setting's value, in the order in which sources win.

    `chosen` are the settings of the command line, or of what `given_by` names. `files` are the
    settings files that set each path; the last one for a path wins.
    """

    def __init__(
        self,
        chosen: Mapping[str, object],
        environment: Mapping[str, str],
        files: Mapping[SettingPath, Path] | None = None,
        *,
        given_by: str = "command line",
    ) -> None:
        self._chosen: Final = chosen
        self._given_by: Final = given_by
        self._variables: Final = {name.upper(): name for name in environment}
        self._files: Final = {} if files is None else files

    def of(self, path: SettingPath) -> str:
        """Return the place of the setting at `path`, as an operator would look for it."""
        if path[0] in self._chosen:
            return self._given_by
        for length in (len(path), 1):
            name = ENVIRONMENT_PREFIX + "_".join(str(part).upper() for part in path[:length])
            for variable in (name, f"{name}{FILE_SUFFIX}"):
                if variable in self._variables:
                    return self._variables[variable]
        for length in range(len(path), 0, -1):
            if path[:length] in self._files:
                return str(self._files[path[:length]])
        return DEFAULTS


def complaints(
    error: ValidationError,
    places: Places,
    *,
    fields: Iterable[str],
    known_in: Mapping[str, Iterable[str]],
) -> Iterable[str]:
    """Return one line for each wrong setting.

    `fields` are the settings at the top, `known_in` those of each table.
    """
    for problem in error.errors(include_url=False):
        path = problem["loc"]
        message = problem["msg"].removeprefix("Value error, ")
        if not path:  # a rule between settings
            yield message
            continue
        if problem["type"] == "extra_forbidden":
            known = known_in[str(path[0])] if len(path) > 1 else fields
            allowed = unknown(str(path[-1]), known)
        else:
            allowed = message
        value = shown(str(path[-1]), problem["input"])
        yield f"{places.of(path)}: {dotted(path)} = {value}: {allowed}"


def dotted(path: SettingPath) -> str:
    """Return a path such as `address[0].pattern`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")
