"""Write the texts that are made from the table of address settings (`broker/address_settings.py`).

    make references

The table makes three sections of `config/broker.toml`, and the page
`docs/reference/address-settings.md`. A test fails while one of them differs from the table.
"""

from __future__ import annotations

from json import dumps  # TOML writes booleans, numbers and short texts alike
from pathlib import Path
from textwrap import wrap
from typing import Final, get_args

import annotated_types
from pydantic import BaseModel

from broker.address_settings import (
    NAMES,
    AddressSettings,
    NodeSettings,
    default_of,
    text_of,
    type_of,
)

ROOT: Final = Path(__file__).resolve().parents[1]
FILE: Final = ROOT / "config" / "broker.toml"
PAGE: Final = ROOT / "docs" / "reference" / "address-settings.md"

WIDTH: Final = 100

GENERAL: Final = "# ---- addresses: settings that can differ between them "
TABLES: Final = "# ---- addresses that differ "
DECLARED: Final = "# ---- queues and topics that exist from the start "

HEADER: Final = """# Settings of addresses

These settings apply to queues, topics and subscriptions. At the top of the settings file they count
for all addresses; in `[[address]]` for the addresses that match its `pattern`; in `[[queue]]` and
`[[topic]]` for the one node of that `name`. The first pattern that matches counts, and a setting
that a table leaves out is as for all addresses. SIGHUP reloads them: new values count for queues
and topics that are created afterwards.

The command `make references` writes this page from `broker/address_settings.py`.

| setting | values | default | meaning |
|---|---|---|---|
"""


def heading(begin: str) -> str:
    """Return the line that begins a section of the settings file."""
    return begin.ljust(90, "-")


def comment(text: str) -> list[str]:
    """Return a text as lines of comments."""
    return wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ")


def general() -> list[str]:
    """Return the section with each setting, its text and its default."""
    lines = [heading(GENERAL), ""]
    for name in NAMES:
        lines += [*comment(text_of(name)), f"#{name} = {dumps(default_of(name))}"]
    return [*lines, ""]


def table(kind: str, of: type[BaseModel], key: str, example: str) -> list[str]:
    """Return a table of the settings file with the defaults."""
    names = [name for name in NAMES if name in of.model_fields]
    shown = [f"#{name} = {dumps(default_of(name))}" for name in names]
    return [f"#[[{kind}]]", f'#{key} = "{example}"', *shown]


STORED_ONCE: Final = (
    "#   [[address]]",
    '#   pattern = "durable/*"',
    "#   duplicate_window = 100000",
)


def tables() -> list[str]:
    """Return the section of `[[address]]`."""
    text = (
        "The first pattern that matches an address counts; * stands for any text, ? for one"
        " character, [ab] for either. A setting that is left out is as above. For example, queues"
        " whose messages are stored once, although clients send them again after a failover:"
    )
    shown = table("address", AddressSettings, "pattern", "orders.*")
    return [heading(TABLES), "", *comment(text), *STORED_ONCE, "", *shown, ""]


def declared() -> list[str]:
    """Return the section of `[[queue]]` and `[[topic]]`, the last of the file."""
    text = (
        "They are created at the start, whatever auto_create says. A setting that is left out is as"
        " for the first pattern that matches the name."
    )
    queue = table("queue", NodeSettings, "name", "orders")
    topic = table("topic", NodeSettings, "name", "prices")
    return [heading(DECLARED), "", *comment(text), *queue, "", *topic]


def file_text(text: str) -> str:
    """Return the settings file with its three sections made anew."""
    lines = text.splitlines()
    for begin, section in ((GENERAL, general()), (TABLES, tables()), (DECLARED, declared())):
        (at,) = (n for n, line in enumerate(lines) if line.startswith(begin))
        ends = (n for n in range(at + 1, len(lines)) if lines[n].startswith("# ---- "))
        lines[at : next(ends, len(lines))] = section
    return "\n".join(lines) + "\n"


def values_of(name: str) -> str:
    """Return the values that a setting takes, in words."""
    kind = type_of(name)
    choices = [each for each in get_args(kind) if isinstance(each, str)]
    if kind is bool:
        return "`true`, `false`"
    if choices:
        return ", ".join(f"`{each}`" for each in choices)
    if kind is str:
        return "a name"
    limits = {type(each): each for each in _limits(kind)}
    low, high = limits[annotated_types.Ge], limits[annotated_types.Le]
    assert isinstance(low, annotated_types.Ge)
    assert isinstance(high, annotated_types.Le)
    most = f" to {high.le:,}" if int(str(high.le)) < 2**53 else " or more"
    return f"{low.ge}{most}"


def _limits(kind: object) -> list[object]:
    found: list[object] = []
    for each in get_args(kind):
        found += getattr(each, "metadata", [])
    return found


def page() -> str:
    """Return the reference page."""
    rows = [
        f"| `{name}` | {values_of(name)} | `{dumps(default_of(name))}` | {text_of(name)} |"
        for name in NAMES
    ]
    return HEADER + "\n".join(rows) + "\n"


def write() -> None:
    """Write both files."""
    FILE.write_text(file_text(FILE.read_text()))
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page())
