"""Records as they are printed for people and for programs."""

import json

import pytest

from broker.cli.printing import (
    escaped,
    json_of,
    print_record,
    print_records,
    progress,
    replaced,
    shown,
)

RECORDS = [{"name": "a b", "size": 1, "more": None}, {"name": "c", "size": 2, "more": True}]

VALUES = [
    pytest.param(None, "", id="nothing"),
    pytest.param(True, "yes", id="true"),
    pytest.param(False, "no", id="false"),
    pytest.param(0, "0", id="a number"),
    pytest.param("a\x1b[2J\n", "a\ufffd[2J\ufffd", id="what a terminal would obey"),
    pytest.param("\x9b31m\x9d0;\u202eb", "\ufffd31m\ufffd0;\ufffdb", id="CSI, OSC and bidi"),
    pytest.param(["a", 1], '["a", 1]', id="a list"),
    pytest.param({"\x9bk": "\u202e"}, '{"\\u009bk": "\\u202e"}', id="a map with controls"),
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


JSON = [
    pytest.param("a b", '"a b"', id="nothing to escape"),
    pytest.param("ä €", '"ä €"', id="printable beyond ASCII"),
    pytest.param("a\n\t\x1b", r'"a\n\t\u001b"', id="what JSON escapes anyway"),
    pytest.param("\x7f\x9b\x9d", r'"\u007f\u009b\u009d"', id="DEL, CSI and OSC"),
    pytest.param("\u202e\u2028\ufeff", r'"\u202e\u2028\ufeff"', id="bidi, line end, BOM"),
    pytest.param("\xa0\u3000", r'"\u00a0\u3000"', id="spaces that are none"),
    pytest.param("😀\U000e0001", r'"😀\udb40\udc01"', id="beyond the BMP"),
    pytest.param("\ud800", r'"\ud800"', id="half of a pair"),
    pytest.param({"\x9b": ["\x9b"]}, r'{"\u009b": ["\u009b"]}', id="a key and an item"),
]


@pytest.mark.parametrize(("value", "expected"), JSON)
def test_json_is_printable_and_has_the_same_value(value: object, expected: str) -> None:
    assert json_of(value) == expected
    assert json.loads(expected) == value


def test_an_indented_document_keeps_its_lines() -> None:
    document = json.dumps({"a": "\x9b\n"}, indent=2, ensure_ascii=False)
    assert escaped(document) == '{\n  "a": "\\u009b\\n"\n}'


def test_characters_that_may_stay() -> None:
    assert replaced("a\n\t\r\x9b", kept="\n\t") == "a\n\t\ufffd\ufffd"


def test_no_bar_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("purged", 10) as bar:
        bar.advance(5)
    assert capsys.readouterr().err == ""
