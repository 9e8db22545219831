"""The page of the service says of each setting what a reload does with it."""

import re
from pathlib import Path
from typing import Final

from broker.address_settings import NAMES
from broker.reload import RELOADABLE
from broker.settings import Settings

PAGE: Final = (
    Path(__file__).resolve().parents[2] / "docs" / "operations" / "service.md"
).read_text()
ROWS: Final = PAGE.partition("| settings | effect of a reload |\n|---|---|\n")[2].partition("\n\n")[
    0
]


def test_the_table_has_each_setting_where_the_code_has_it() -> None:
    rows = [row.strip("| ").split(" | ") for row in ROWS.splitlines()]
    fixed = [cells[0] for cells in rows if cells[1].startswith("none: they need a restart")]
    applied = [cells[0] for cells in rows if cells[0] not in fixed]
    # the settings of addresses are named together
    assert any(cell.startswith("settings of addresses") for cell in applied)
    names = r"`\[*(\w+)(?:\.\w+)?\]*`"
    of_applied = set(re.findall(names, " ".join(applied)))
    of_fixed = set(re.findall(names, " ".join(fixed).replace(" without its table `tls`", "")))
    settings = set(Settings.model_fields)
    assert of_applied | set(NAMES) & settings == RELOADABLE & settings
    # of a listener a reload applies the table tls, and nothing else
    assert of_fixed == settings - RELOADABLE | {"listener"}
