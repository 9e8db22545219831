"""The page of other brokers: its numbers are those of the results, each failure has its line."""

import re
from typing import Final

import pytest

from config import brokers_page
from tests.conformance.harness import all_cases

PAGE: Final = brokers_page.PAGE.read_text()
RESULTS: Final = brokers_page.read_results()
NAMES: Final = {case.name for case in all_cases()}
SECTIONS: Final = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.M)}
PEERS: Final = [(at, run.broker) for at, run in enumerate(RESULTS.runs) if at]
"""Place and name of each broker but the first, which is this project's."""


def failed_on(at: int) -> set[str]:
    return {
        case.rpartition(" ")[2] for case, row in RESULTS.verdicts.items() if row[at] == "failed"
    }


def test_the_tables_are_made_from_the_results() -> None:
    assert brokers_page.page_text(PAGE) == PAGE, "run `make references`"


def test_this_broker_comes_first_and_fails_nothing() -> None:
    assert RESULTS.runs[0].broker.startswith("jms-broker ")
    assert failed_on(0) == set()


@pytest.mark.parametrize(("at", "broker"), PEERS, ids=[broker for _, broker in PEERS])
def test_each_failure_of_a_peer_has_its_line(at: int, broker: str) -> None:
    """And no line names a case that the peer passes."""
    named = [name for name in re.findall(r"`(\w+)`", SECTIONS[broker]) if name in NAMES]
    assert sorted(named) == sorted(failed_on(at) & NAMES)


@pytest.mark.parametrize("broker", [broker for _, broker in PEERS])
def test_each_line_has_a_clause_a_sentence_and_cases(broker: str) -> None:
    rows = re.findall(r"^\| (.+?) \| (.+) \| (.+?) \|$", SECTIONS[broker], re.MULTILINE)
    assert rows
    for clause, sentence, cases in rows[1:]:
        assert clause
        assert len(sentence.split()) > 5, sentence
        assert re.fullmatch(r"`\w+`(, `\w+`)*", cases), cases


def test_the_page_says_which_cases_are_newer_than_the_results() -> None:
    tried = {case.rpartition(" ")[2] for case in RESULTS.verdicts}
    told = re.findall(r"The (\d+) cases that are newer", PAGE)
    newer = len(NAMES - tried)
    wanted = [newer] if newer else []
    advice = f"run them on all brokers, or write: The {newer} cases that are newer were not run."
    assert [int(number) for number in told] == wanted, advice
