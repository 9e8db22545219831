"""The name and the version of the harness, which reports show."""

from __future__ import annotations

from typing import Final

from broker import __version__

HARNESS: Final = f"amqp-conformance {__version__}"
