"""A page of HTML in one file: its style, its script, and the frames, compressed, within it.

The page asks for nothing from a network, and its policy forbids that: it may be opened from a disk
or a mail, although it shows what a hostile broker sent.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, ElementTree, SubElement

from .harness import Result
from .report import reasons_of, verdict_of
from .verdict import Verdict

FOLDER: Final = Path(__file__).parent
STYLE: Final = (FOLDER / "report_page.css").read_text(encoding="utf-8")
SCRIPT: Final = (FOLDER / "report_page.js").read_text(encoding="utf-8")

COUNTED: Final = (Verdict.PASSED, Verdict.FAILED, Verdict.NOT_APPLICABLE)


def slug(words: str) -> str:
    """Return `words` as the name of a class or the value of a filter."""
    return words.replace(" ", "-")


def slugs_of(result: Result) -> list[str]:
    """Return the values of the verdict's filter that fit a result."""
    found = [slug(result.verdict.value)]
    if result.kind is not None:
        found.append(slug(result.kind.value))
    return [*found, "known"] if result.known else found


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


POLICY: Final = f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}"


class HtmlPage:
    """A page under construction; `frames` numbers the conversations that it will have."""

    def __init__(self, title: str) -> None:
        self._page: Final = Element("html", lang="en")
        self._frames: Final[list[list[str]]] = []
        head = SubElement(self._page, "head")
        SubElement(head, "meta", charset="utf-8")
        SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": POLICY})
        SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
        SubElement(head, "title").text = title
        SubElement(head, "style").text = STYLE
        self.body: Final = SubElement(SubElement(self._page, "body"), "main")
        SubElement(self.body, "h1").text = title

    def facts(self, *lines: str) -> None:
        """Add a paragraph for each line."""
        for line in lines:
            SubElement(self.body, "p", {"class": "facts"}).text = line

    def heading(self, text: str) -> None:
        """Add a heading."""
        SubElement(self.body, "h2").text = text

    def totals(self, counts: Mapping[str, int], verdicts: Mapping[str, str]) -> None:
        """Add a number for each of `counts`, coloured by the class in `verdicts`."""
        row = SubElement(self.body, "ul", {"class": "totals"})
        for name, count in counts.items():
            item = SubElement(row, "li")
            SubElement(item, "b", {"class": verdicts.get(name, "")}).text = str(count)
            SubElement(item, "span").text = name

    def filters(self, groups: Iterable[str], verdicts: Mapping[str, str]) -> None:
        """Add the form that filters the rows; `verdicts` are the words of each value."""
        form = SubElement(self.body, "form")
        for name, first, values in (
            ("group", "all clauses", {group: group for group in groups}),
            ("verdict", "all verdicts", verdicts),
        ):
            choice = SubElement(form, "select", {"name": name, "aria-label": name})
            SubElement(choice, "option", value="").text = first
            for value, words in values.items():
                SubElement(choice, "option", value=value).text = words
        words_field = {"name": "words", "type": "search", "aria-label": "words"}
        SubElement(form, "input", {**words_field, "placeholder": "name, rule, expected or got …"})
        SubElement(form, "output", id="shown")
        SubElement(
            SubElement(self.body, "noscript"), "p"
        ).text = "Filters and frames need JavaScript; the report of --json has the frames as text."

    def table(self, name: str, columns: Sequence[tuple[str, str]]) -> Element:
        """Add a table with columns, pairs of a title and a class; return its body."""
        place = SubElement(self.body, "div", {"class": "wide"})
        table = SubElement(place, "table", {"class": name, "id": name})
        row = SubElement(SubElement(table, "thead"), "tr")
        for title, kind in columns:
            SubElement(row, "th", {"class": kind, "scope": "col"}).text = title
        return SubElement(table, "tbody")

    def add_reasons(self, place: Element, result: Result) -> None:
        """Add expected, got, reason and known, if there are any."""
        pairs = reasons_of(result)
        if not pairs:
            return
        reasons = SubElement(place, "dl", {"class": slug(result.verdict.value)})
        for word, text in pairs:
            SubElement(reasons, "dt").text = word
            SubElement(reasons, "dd").text = text

    def add_frames(self, place: Element, lines: list[str], words: str = "frames") -> None:
        """Add details that show the frames once they are opened."""
        if not lines:
            return
        details = SubElement(place, "details", {"data-frames": str(len(self._frames))})
        SubElement(details, "summary").text = words
        SubElement(details, "pre", tabindex="0")  # a keyboard scrolls it
        self._frames.append(lines)

    def write(self, file: Path) -> None:
        """Write the page."""
        text = json.dumps(self._frames, ensure_ascii=False, separators=(",", ":"))
        # a surrogate alone, which UTF-8 does not have, is then as JSON escapes it
        content = text.encode(errors="backslashreplace")
        # without a time of writing, so that equal reports are equal files
        packed = base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()
        kind = {"type": "application/gzip", "id": "frames"}
        SubElement(self.body, "script", kind).text = packed
        SubElement(self.body, "script").text = SCRIPT
        with file.open("wb") as out:
            out.write(b"<!doctype html>\n")
            ElementTree(self._page).write(out, encoding="utf-8", method="html")


def add_counts(row: Element, counts: Counter[Verdict], verdicts: Sequence[Verdict]) -> None:
    """Add a cell with the number of cases of each verdict."""
    for verdict in verdicts:
        kind = slug(verdict.value) if counts[verdict] else "zero"
        SubElement(row, "td", {"class": f"number {kind}"}).text = str(counts[verdict])


def add_choice(row: Element, group: str) -> None:
    """Add a cell with a clause that filters the cases."""
    cell = SubElement(row, "td")
    SubElement(cell, "button", {"type": "button", "data-choose": group}).text = group


def add_verdict(row: Element, result: Result) -> None:
    """Add a cell with the verdict."""
    classes = " ".join(["verdict", *slugs_of(result)])
    SubElement(row, "td", {"class": classes}).text = verdict_of(result)
