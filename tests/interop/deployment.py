"""The files with which the broker is installed, as data: unit, compose file, manifests, chart."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.interop.broker_process import ROOT

CONFIG: Final = ROOT / "config"
UNIT: Final = CONFIG / "systemd" / "jms-broker.service"
COMPOSE: Final = CONFIG / "compose"
KUBERNETES: Final = CONFIG / "kubernetes"
CHART: Final = CONFIG / "helm" / "jms-broker"

FILES: Final = sorted(
    file
    for folder in (UNIT.parent, COMPOSE, KUBERNETES, CHART)
    for file in folder.rglob("*")
    if file.is_file()
)

VARIABLE: Final = re.compile(r"\bJMS_BROKER_[A-Z_]+[A-Z]\b")
COMMAND: Final = re.compile(r"jms-broker (?P<words>[a-z][a-z-]*(?: [^\n`…#]*)?)")


def documents(text: str) -> list[dict[str, Any]]:
    """Return the documents of a YAML text."""
    yaml = importlib.import_module("yaml")
    return [each for each in yaml.safe_load_all(text) if each is not None]


def manifest(name: str) -> dict[str, Any]:
    """Return the one document of a manifest of Kubernetes."""
    (found,) = documents((KUBERNETES / name).read_text())
    return found


def compose() -> dict[str, Any]:
    """Return the service of the compose file."""
    (found,) = documents((COMPOSE / "compose.yaml").read_text())
    service: dict[str, Any] = found["services"]["broker"]
    return service


def container() -> dict[str, Any]:
    """Return the container of the StatefulSet."""
    (found,) = manifest("statefulset.yaml")["spec"]["template"]["spec"]["containers"]
    made: dict[str, Any] = found
    return made


def unit() -> list[tuple[str, str, str]]:
    """Return the settings of the unit: the section, the name and the value of each."""
    section = ""
    found = []
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.append((section, name, value))
    return found


def commands(file: Path) -> Iterator[list[str]]:
    """Yield the words of each command of `jms-broker` in a file, without the program."""
    text = re.sub(r"\n +(?=--)", " ", file.read_text())  # a folded line of YAML
    # in exec form, and as the program of a unit
    text = re.sub(r"\[CMD, jms-broker, ([^\]]*)\]", lambda at: _exec_form(at[1]), text)
    for found in COMMAND.finditer(text.replace("/bin/jms-broker ", "/bin/ jms-broker ")):
        words = found["words"].replace('\\"', '"')
        try:
            yield shlex.split(words)
        except ValueError:
            continue  # prose with an apostrophe


def _exec_form(words: str) -> str:
    return f"jms-broker {words.replace(', ', ' ')}"
