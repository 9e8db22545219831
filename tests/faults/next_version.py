"""The next version of the broker, as an upgrade sees it: today's sources and one migration."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

import broker
from storage.sql.schema import HEAD
from tests.interop.broker_process import ROOT

NEXT: Final = f"{int(HEAD) + 1:04}"
"""Version of the schema that the next version of the broker makes."""

VERSION: Final = f"{broker.__version__}.post1"

MIGRATION: Final = f"""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{HEAD}"


def upgrade() -> None:
    op.add_column("member", sa.Column("remark", sa.String, nullable=True))
"""


def next_version(folder: Path) -> Path:
    """Write the sources of the next version into `folder`, which does not exist; return it."""
    for package in ("broker", "storage"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copy(ROOT / "jms_broker.py", folder)
    _set(folder / "broker" / "__init__.py", "__version__", VERSION)
    schema = folder / "storage" / "sql" / "schema.py"
    _set(schema, "HEAD", NEXT)
    (schema.parent / "migrations" / "versions" / f"v{NEXT}_next.py").write_text(MIGRATION)
    return folder


def _set(file: Path, name: str, value: str) -> None:
    """Give a constant of a module another text."""
    changed, count = re.subn(
        rf'^{name}: Final = ".*"$', f'{name}: Final = "{value}"', file.read_text(), flags=re.M
    )
    assert count == 1, f"{file.name} has no {name}"
    file.write_text(changed)
