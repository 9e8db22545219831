"""Write the table of the log's lines into `docs/reference/log.md`, from the table in the code."""

from __future__ import annotations

from typing import Final

from broker.log_events import LOG_EVENTS
from config.settings_texts import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "log.md"

BEGIN: Final = "<!-- log events -->\n"
END: Final = "<!-- end: log events -->\n"


def page_text(text: str) -> str:
    """Return the page with its table made from the code."""
    before, _, rest = text.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{behind}"


def table() -> str:
    """Return the table of all kinds of lines."""
    lines = ["| code | level | line | what to do |", "|---|---|---|---|"]
    for event in sorted(LOG_EVENTS, key=lambda each: each.code):
        title = event.title.format("ten")
        lines.append(f"| `{event.code}` | {event.level} | {title} | {event.remedy} |")
    return "\n".join(lines) + "\n"


def write() -> None:
    """Write the page."""
    PAGE.write_text(page_text(PAGE.read_text()))
