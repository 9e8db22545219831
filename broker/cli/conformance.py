"""`jms-broker conformance`: the commands of the harness, whose modules are tests/conformance."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final

import typer

# in a wheel, the harness is in the package; in a checkout, among the other tests
PACKAGE: Final = "broker" if find_spec("broker.conformance") is not None else "tests"

conformance: Final[typer.Typer] = import_module(f"{PACKAGE}.conformance.program").application
