"""`jms-broker pipeline doctor` names what Spark reports in other words."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from broker.cli.application import application
from pyspark_amqp.doctor import FAILED, OK, java, library, planner

pytestmark = pytest.mark.requirement("PIP-76")


def program(folder: Path, name: str, script: str) -> dict[str, str]:
    """Make a program; return the variables of a machine that has no other one."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return {"PATH": str(folder)}


def test_a_python_without_the_package_is_told_as_what_spark_makes_of_it(tmp_path: Path) -> None:
    found = planner(program(tmp_path, "python3", f'exec {sys.executable} -I -S "$@"'))
    assert found.level == FAILED
    assert "ModuleNotFoundError: No module named" in found.finding
    assert found.finding.endswith("DATA_SOURCE_NOT_FOUND")
    assert f"PYSPARK_PYTHON={sys.executable}" in found.remedy


def test_the_python_that_is_named_counts_before_that_of_the_path(tmp_path: Path) -> None:
    variables = program(tmp_path, "python3", "exit 1")
    here = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert planner({**variables, **here}).level == OK
    assert planner({**variables, "PYSPARK_PYTHON": "pypy"}).finding == "there is no pypy"


@pytest.mark.parametrize(
    ("script", "level", "text"),
    [
        pytest.param("""echo 'openjdk version "17.0.15"' >&2""", OK, "is version 17", id="new"),
        pytest.param("""echo 'java version "1.8.0"' >&2""", FAILED, '"1.8.0"', id="old"),
        pytest.param("exit 1", FAILED, "does not start", id="broken"),
    ],
)
def test_java(tmp_path: Path, script: str, level: str, text: str) -> None:
    found = java(program(tmp_path, "java", script))
    assert found.level == level
    assert text in found.finding


def test_missing_things(tmp_path: Path) -> None:
    assert java({"PATH": str(tmp_path)}).finding.startswith("there is no java")
    assert (
        library("x", "no-such-package", "pipeline").remedy == "pip install 'jms-broker[pipeline]'"
    )


def test_a_broker_that_is_not_reached_is_a_failed_check() -> None:
    words = ["pipeline", "doctor", "--json", "--url", "amqp://127.0.0.1:1"]
    done = CliRunner().invoke(application, words)
    assert done.exit_code == 1
    rows = {row["check"]: row for row in map(json.loads, done.output.splitlines())}
    assert rows["broker"]["level"] == FAILED
    assert "no broker: amqp://127.0.0.1:1" in rows["broker"]["finding"]
    assert rows["arrow"]["level"] == rows["client"]["level"] == OK
