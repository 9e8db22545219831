"""Kinds of lines of the log: their codes are unique, and every line that is written has one."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from broker import log_events
from broker.log_events import ERROR, INFO, LOG_EVENTS, WARNING, LogEvent

pytestmark = pytest.mark.requirement("OPS-10")

BROKER: Final = Path(__file__).resolve().parents[2] / "broker"

CODE: Final = re.compile(r"[A-Z]{3}-[0-9]{3}")

NAMES: Final = {name: each for name, each in vars(log_events).items() if isinstance(each, LogEvent)}


def test_each_code_is_of_one_kind() -> None:
    codes = [event.code for event in LOG_EVENTS]
    assert len(set(codes)) == len(codes) == len(NAMES)
    for event in LOG_EVENTS:
        assert CODE.fullmatch(event.code), event.code
        assert event.level in (INFO, WARNING, ERROR), event.code
        assert event.level != ERROR or event.remedy, event.code


def test_each_kind_is_written_somewhere() -> None:
    used = set()
    for file in BROKER.rglob("*.py"):
        if file.name != "log_events.py":
            used |= set(re.findall(r"\b[A-Z][A-Z_]+\b", file.read_text()))
    assert sorted(set(NAMES) - used) == []


def test_no_line_is_written_without_a_code() -> None:
    found = []
    for file in BROKER.rglob("*.py"):
        text = file.read_text()
        if "structlog" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_log = ast.unparse(node.func.value) in ("log", "self._log")
                codes = [each.arg for each in node.keywords if each.arg == "code"]
                if is_log and node.func.attr in ("info", "warning", "error", "log") and not codes:
                    found.append(f"{file.name}:{node.lineno}")
    assert found == []
