"""The page of conformance counts the cases that there are."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Final

from tests.conformance.harness import all_cases
from tests.conformance.report_file import FORMAT, write_json
from tests.conformance.test_report import REPORT
from tests.conformance.test_this_broker import NOT_APPLICABLE

PAGE: Final = (Path(__file__).resolve().parents[2] / "docs" / "conformance.md").read_text()
SECTIONS: Final = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.M)}
WORDS: Final = ("no", "one", "two", "three", "four")


def test_the_page_has_the_number_of_cases() -> None:
    number = str(len(all_cases()))
    assert re.findall(r"(\d+) cases, one after another", SECTIONS["Run it"]) == [number]
    others = SECTIONS["Results of other brokers"]
    assert re.findall(r"all of the (\d+) cases that apply", others) == [number]
    verb = "does" if len(NOT_APPLICABLE) == 1 else "do"
    assert f"{WORDS[len(NOT_APPLICABLE)]} {verb} not apply" in others


def test_the_page_counts_the_cases_of_each_source() -> None:
    rows = re.findall(r"^\| `?(\w+):?`? \|.*\| (\d+) \|$", SECTIONS["What it tests"], re.MULTILINE)
    counts = Counter(case.source for case in all_cases())
    assert {source: int(number) for source, number in rows} == counts


def test_the_page_names_the_fields_of_the_report(tmp_path: Path) -> None:
    write_json(REPORT, tmp_path / "report.json")
    content = json.loads((tmp_path / "report.json").read_text())
    told = SECTIONS["Read the result"].partition("| field | meaning |")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| (.*?) \| (.*) \|$", told, re.MULTILINE))
    names = {row: set(re.findall(r"`(\w+)`", row)) for row in rows}
    assert set().union(*names.values()) == set(content)
    for name, held in (("broker", content["broker"]), ("cases", content["cases"][0])):
        assert set(re.findall(r"`(\w+)`", rows[f"`{name}`"])) == set(held)
    assert f"`{FORMAT}`" in told
