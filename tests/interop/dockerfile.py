"""The Dockerfile as data: its stages, and the instructions of each."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Final, cast

from tests.interop.broker_process import ROOT

DOCKERFILE: Final = ROOT / "Dockerfile"
DOCKERIGNORE: Final = ROOT / ".dockerignore"


class Stage:
    """The instructions from one FROM to the next."""

    def __init__(self, origin: str) -> None:
        self.origin: Final = origin
        self.instructions: Final[list[tuple[str, str]]] = []

    def all(self, word: str) -> list[str]:
        """Return the text after each `word`, in order."""
        return [rest for name, rest in self.instructions if name == word]

    def last(self, word: str) -> str:
        """Return the text after the last `word`, which is the one that counts."""
        return self.all(word)[-1]

    def words(self, word: str) -> list[str]:
        """Return the exec form, ["jms-broker", "serve"], of the last `word`."""
        text = self.last(word)
        return cast(list[str], json.loads(text[text.index("[") :]))

    @property
    def environment(self) -> dict[str, str]:
        pairs = (pair.partition("=") for text in self.all("ENV") for pair in shlex.split(text))
        return {name: value for name, _, value in pairs}


def read_stages(text: str) -> tuple[dict[str, str], list[Stage]]:
    """Return the arguments before the first FROM with their defaults, and the stages."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for name, rest in _instructions(text):
        if name == "FROM":
            stages.append(Stage(rest))
        elif stages:
            stages[-1].instructions.append((name, rest))
        else:
            key, _, value = rest.partition("=")
            arguments[key] = value
    return arguments, stages


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield each instruction, as its word and its text on one line, without comments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, rest = re.sub(r"\s+", " ", line.strip()).partition(" ")
            yield name.upper(), rest
