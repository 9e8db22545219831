"""Records as they are printed for people and for programs."""

import pytest

from broker.cli.printing import json_of, print_record, print_records, progress, shown

RECORDS = [{"name": "a b", "size": 1, "more": None}, {"name": "c", "size": 2, "more": True}]

VALUES = [
    pytest.param(None, "", id="nothing"),
    pytest.param(True, "yes", id="true"),
    pytest.param(False, "no", id="false"),
    pytest.param(0, "0", id="a number"),
    pytest.param("a\x1b[2J\n", "a\ufffd[2J\ufffd", id="what a terminal would obey"),
    pytest.param(["a", 1], '["a", 1]', id="a list"),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_a_value_in_a_table(value: object, expected: str) -> None:
    assert shown(value) == expected


def test_lines_with_tabs_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    print_records(RECORDS, ["size", "name", "more"], as_json=False)
    assert capsys.readouterr().out == "size\tname\tmore\n1\ta b\t\n2\tc\tyes\n"


def test_an_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_records(RECORDS, ["name"], as_json=True)
    assert capsys.readouterr().out.splitlines() == [
        '{"name": "a b", "size": 1, "more": null}',
        '{"name": "c", "size": 2, "more": true}',
    ]


def test_one_record_an_attribute_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_record({"a": 1, "long_name": None}, as_json=False)
    assert capsys.readouterr().out == "a          1\nlong name\n"


def test_bytes_in_json() -> None:
    assert json_of({"a": b"\x00"}) == '{"a": {"base64": "AA=="}}'


def test_no_bar_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("purged", 10) as bar:
        bar.advance(5)
    assert capsys.readouterr().err == ""
