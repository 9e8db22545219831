"""Changes of the text of a rules file."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from broker.security.rules_edit import (
    RulesChange,
    changed_rules,
    table_of_limit,
    table_of_rule,
    write_rules,
)
from broker.security.rules_file import RulesFileError

TEXT = """\
# head
[roles]
a = ["ann"]
# of the rule x
[[rule]] # here
id = "x"
who = ["role:a"]
can = ["send"]
on = ["queue:q"]

# of the limit
[[limit]]
who = ["role:a"]
links = 1
"""

RULE = {"id": "y", "who": ["user:b"], "can": ["view"], "on": ["queue:é"], "effect": "deny"}

CHANGES = [
    pytest.param(RulesChange(rules={"y": RULE}), ["# head", "# of the rule x"], id="a new rule"),
    pytest.param(
        RulesChange(rules={"x": {**RULE, "id": "x"}}),
        ["# head", "# of the rule x", "# of the limit"],
        id="a changed rule",
    ),
    pytest.param(RulesChange(roles={"b.c": ["x"]}), ["# of the rule x"], id="a new role"),
    pytest.param(
        RulesChange(limits={0: {"who": ["role:a"], "links": 2}}), ["# head"], id="a limit"
    ),
    pytest.param(
        RulesChange(limits={1: {"who": ["role:a"], "links": 2}}), ["# head"], id="another"
    ),
    pytest.param(
        RulesChange(rules={"y": {**RULE, "when": {"tls": True, "from": ["::1/128"]}}}),
        ["# head"],
        id="conditions",
    ),
]


@pytest.mark.requirement("OPS-12")
@pytest.mark.parametrize(("change", "kept"), CHANGES)
@pytest.mark.parametrize("text", ["", TEXT], ids=["empty", "with comments"])
def test_a_change(text: str, change: RulesChange, kept: list[str]) -> None:
    if not text and 0 not in change.limits and 1 in change.limits:
        change = RulesChange(limits={0: change.limits[1]})
    new, rules = changed_rules(text, change, "acl.toml")
    record = tomllib.loads(new)
    assert {each["id"]: each for each in record.get("rule", [])}.items() >= change.rules.items()
    assert record.get("roles", {}).items() >= change.roles.items()
    assert [record["limit"][place] for place in change.limits] == list(change.limits.values())
    assert text == "" or [line for line in kept if line not in new] == []
    own = [table_of_rule(each) for each in rules.rules if not each.is_built_in]
    again, _ = changed_rules(new, RulesChange(rules={str(each["id"]): each for each in own}), "f")
    assert tomllib.loads(again).get("limit", []) == [table_of_limit(each) for each in rules.limits]


UNUSUAL = [
    pytest.param(
        'rule = [{id = "x", who = ["user:a"], can = ["send"], on = ["queue:q"]}]', id="inline"
    ),
    pytest.param('roles = {a = ["ann"]}\n', id="an inline table"),
    pytest.param("[roles]\na = ['''\n[[rule]]\n''']\n", id="a header in a text"),
]


@pytest.mark.parametrize("text", UNUSUAL)
def test_a_file_of_another_form(text: str) -> None:
    try:
        new, _ = changed_rules(text, RulesChange(rules={"y": RULE}), "acl.toml")
    except RulesFileError:
        assert "[[rule]]\n'''" in text, "a name with a line feed is none"
        return
    wanted = tomllib.loads(text)
    wanted["rule"] = [*wanted.get("rule", []), RULE]
    assert tomllib.loads(new) == wanted


@pytest.mark.parametrize(
    ("text", "change"),
    [
        pytest.param("[[rule]]", RulesChange(), id="the file"),
        pytest.param("", RulesChange(rules={"y": {"id": "y"}}), id="the change"),
    ],
)
def test_a_wrong_one_is_refused(text: str, change: RulesChange) -> None:
    with pytest.raises(RulesFileError, match=r"acl\.toml"):
        changed_rules(text, change, "acl.toml")


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "acl.toml"
    file.write_text("old")
    file.chmod(0o640)
    write_rules(file, "new")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o640)
    assert list(tmp_path.iterdir()) == [file]
