"""Every requirement, promise, class of attacks, fault and document that is cited exists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.support import tidy
from tests.support.tidy import ROOT, Source
from tests.test_tidy import DOCUMENTS, EVERYTHING, TESTS, none_of

REQUIREMENTS: Final = "docs/requirements.md"
PROMISES: Final = "docs/reliability.md"
ATTACKS: Final = "docs/design/hostile-input.md"
FAULTS: Final = "docs/design/faults.md"
HISTORY: Final = {ROOT / "CHANGELOG.md"}
"""Documents that name files of earlier versions."""


def prose() -> Iterator[tuple[Path, str]]:
    """Yield the prose of every file that names a document: docstrings and comments, or text."""
    for source in EVERYTHING:
        if ".md" in source.text:
            yield ROOT / source.path, tidy.prose_of(source)
    for file in DOCUMENTS:
        if file not in HISTORY:
            yield file, tidy.prose_in(file.read_text())


def placed(file: Path, found: Iterable[str]) -> Iterator[str]:
    """Put the path of `file` in front of each line of `found`."""
    return (f"{file.relative_to(ROOT)}:{line}" for line in found)


def test_every_cited_requirement_exists() -> None:
    known = tidy.ids_on("## Group\n| id | text |\n|---|---|\n| CON-01 | as CON-02 |")
    text = f"first CON-01\nthen CON-{9:02}, UTF-{16}"
    assert list(tidy.unknown_requirements(text, known)) == [
        f"2: there is no requirement CON-{9:02}"
    ]
    known = tidy.ids_on((ROOT / REQUIREMENTS).read_text())
    texts = [(ROOT / source.path, source.text) for source in EVERYTHING]
    texts += [(file, file.read_text()) for file in DOCUMENTS]
    texts += [
        (ROOT / "tests/requirement_ids.txt", (ROOT / "tests/requirement_ids.txt").read_text())
    ]
    none_of(
        line
        for file, text in texts
        for line in placed(file, tidy.unknown_requirements(text, known))
    )


def test_every_cited_fault_exists() -> None:
    assert list(tidy.unknown_faults("F1\nF9-stall F100", {"F1", "F9"})) == [
        "2: there is no fault F100"
    ]
    known = tidy.ids_on((ROOT / FAULTS).read_text())
    texts = [(ROOT / source.path, source.text) for source in TESTS]
    texts += [(file, tidy.prose_in(file.read_text())) for file in DOCUMENTS]
    folders = (ROOT / "tests/faults", ROOT / "docs")
    none_of(
        line
        for file, text in texts
        if any(file.is_relative_to(folder) for folder in folders)
        for line in placed(file, tidy.unknown_faults(text, known))
    )


def test_every_cited_promise_and_class_of_attacks_exists() -> None:
    cited = f"(P1, R{99}), not A-Z0-9 or P256"
    assert list(tidy.unknown_promises_or_attacks(cited, {"P1"})) == [
        f"1: there is no promise or class of attacks R{99}"
    ]
    known = {
        name for page in (PROMISES, ATTACKS) for name in tidy.ids_on((ROOT / page).read_text())
    }
    none_of(
        line
        for source in EVERYTHING
        for line in placed(ROOT / source.path, tidy.unknown_promises_or_attacks(source.text, known))
    )


def test_every_cited_document_exists() -> None:
    text = "see README.md\nand tests/none.md, not https://example.org/none.md or musts/*.md"
    assert list(tidy.missing_pages(text, ROOT)) == ["2: there is no tests/none.md"]
    assert list(tidy.missing_pages("../README.md", ROOT / "docs")) == []
    none_of(
        line
        for file, text in prose()
        for line in placed(file, tidy.missing_pages(text, file.parent))
    )


def test_every_cited_file_of_tests_exists() -> None:
    text = "`links/test_a.py`\nand `test_b.py`, `tests/x/test_a.py`"
    known = ["tests/unit/links/test_a.py", "tests/wire/test_b.py"]
    assert list(tidy.missing_tests(text, known)) == ["2: there is no tests/x/test_a.py"]
    known = [str(source.path) for source in TESTS]
    none_of(
        line
        for file in DOCUMENTS
        if file not in HISTORY
        for line in placed(file, tidy.missing_tests(file.read_text(), known))
    )


def test_every_cited_place_in_a_document_exists() -> None:
    page = f"`{REQUIREMENTS}`"
    assert list(tidy.missing_places(f"{page} says so\n{page}\n# rules 98 and X7")) == [
        f"2: there is no 98 in {REQUIREMENTS}",
        f"2: there is no X7 in {REQUIREMENTS}",
    ]
    assert tidy.ids_on("## 5.2 Filters\n| R7 | S1 |\ntext 3") == {"5.2", "R7"}
    none_of(line for file, text in prose() for line in placed(file, tidy.missing_places(text)))


def test_only_prose_is_cited_from() -> None:
    text = '"""a\nb"""\nx = "c.md"  # d\ndef f():\n    """e"""\n'
    assert tidy.prose_of(Source("broker/example.py", text)).splitlines() == [
        '"""a',
        'b"""',
        "# d",
        "",
        '    """e"""',
    ]
    assert tidy.prose_in("a\n```python\nb\n```\nc") == "a\n\n\n\nc"
