"""Valid and invalid selectors, and the position of an error in them (JMS 2.0, 3.8.1.1)."""

import pytest

from broker.routing.errors import InvalidSelector
from broker.routing.selector.parse import CHARACTERS_MAX, DEPTH_MAX, TOKENS_MAX, parse

pytestmark = pytest.mark.requirement("RCV-05")

VALID = [
    pytest.param("JMSType = 'car' AND color = 'blue' AND weight > 2500", id="JMS's own example"),
    pytest.param("Country IN ('UK', 'US', 'France')", id="in"),
    pytest.param("Country NOT IN ('UK')", id="not in"),
    pytest.param("phone LIKE '12%3' OR word NOT LIKE 'l_se'", id="like"),
    pytest.param("underscored LIKE '\\_%' ESCAPE '\\'", id="escape"),
    pytest.param("age BETWEEN 15 AND 19 AND age NOT BETWEEN 16 AND 17", id="between, and"),
    pytest.param("prop_name IS NULL OR prop_name IS NOT NULL", id="null"),
    pytest.param("NOT flag AND NOT (other OR TRUE)", id="conditions that are properties"),
    pytest.param("not x like 'a' aNd y iS nOt NuLl oR fAlSe", id="keywords in any case"),
    pytest.param("\ta=1\r\nAND\fb=2 ", id="all white space"),
    pytest.param("a=1AND b=2", id="a number that ends where a keyword starts"),
    pytest.param("-a * (b + 3) / -2 >= +c - 1", id="arithmetic"),
    pytest.param("a = -9223372036854775808 OR a = 9223372036854775807", id="all of a long"),
    pytest.param("(a = 1) = TRUE", id="conditions compared"),
    pytest.param("'a' = a AND 2 < b", id="literals in front"),
    pytest.param("$a = 1 AND _b = 2 AND c€ = 3", id="what else Java has in names"),
    pytest.param("été = 1 AND 名前 = 'x' AND नाम = 'y'", id="letters beyond ASCII"),
    pytest.param("ORDER = 1 AND isa = 2 AND nothing = 3", id="names that begin like keywords"),
    pytest.param("(a) LIKE 'x'", id="an identifier in parentheses"),
    pytest.param("JMSXGroupID = 'g' AND JMS_Vendor = 1 AND JMSXAppID = 'x'", id="JMSX and JMS_"),
    pytest.param("''''  = a", id="a quote alone"),
]


@pytest.mark.parametrize("text", VALID)
def test_a_selector_may_say(text: str) -> None:
    parse(text)


INVALID = [
    pytest.param("", 1, "too early", id="nothing"),
    pytest.param("a =", 4, "too early", id="half a comparison"),
    pytest.param("a = 'x", 5, "does not end", id="a string that does not end"),
    pytest.param("a = 1 b", 7, "'b' is unexpected", id="two things side by side"),
    pytest.param("a == 1", 4, "'=' is unexpected", id="the equals sign of Java"),
    pytest.param("a != 1", 3, "'!' is unexpected", id="the unequal sign of Java"),
    pytest.param('a = "x"', 5, "unexpected", id="double quotes"),
    pytest.param("a = b = c", 7, "unexpected", id="three things compared"),
    pytest.param("a LIKE b", 8, "'b' is unexpected", id="a pattern that is no literal"),
    pytest.param("'x' LIKE 'x'", 1, "identifier", id="LIKE of a literal"),
    pytest.param("b = 2 AND a + 1 IN ('x')", 11, "identifier", id="IN of a sum"),
    pytest.param("a IN ()", 7, "unexpected", id="IN of nothing"),
    pytest.param("a IN (1)", 7, "unexpected", id="IN of numbers"),
    pytest.param("1 IS NULL", 1, "identifier", id="IS NULL of a literal"),
    pytest.param("a LIKE 'x!' ESCAPE '!'", 8, "escape", id="nothing behind the escape character"),
    pytest.param("a LIKE 'x' ESCAPE 'ab'", 19, "one character", id="two escape characters"),
    pytest.param("a LIKE 'x' ESCAPE ''", 19, "one character", id="no escape character"),
    pytest.param("a < 'x'", 5, "a number is expected", id="order of strings"),
    pytest.param("a BETWEEN 1 AND 'x'", 17, "a number is expected", id="between strings"),
    pytest.param("a > TRUE", 5, "a number is expected", id="order of booleans"),
    pytest.param("a + 'x' = 1", 5, "a number is expected", id="a sum of strings"),
    pytest.param("a = -'x'", 6, "a number is expected", id="a negative string"),
    pytest.param("a = 1 AND 5", 11, "a condition is expected", id="a number for a condition"),
    pytest.param("'x'", 1, "a condition is expected", id="a string for a condition"),
    pytest.param("NOT (a + 1)", 6, "a condition is expected", id="NOT of a number"),
    pytest.param("a = 08", 6, "unexpected", id="an octal number with an 8"),
    pytest.param("a = 9223372036854775809", 5, "64 bits", id="more than a long"),
    pytest.param("a = 0x8000000000000001", 5, "64 bits", id="more than a long in hex"),
    pytest.param("a = 1e400", 5, "too large", id="more than a double"),
    pytest.param("a = 1e39f", 5, "too large", id="more than a float"),
    pytest.param("JMSDestination = 'x'", 1, "cannot ask", id="a header that is not offered"),
    pytest.param("a = 1 AND JMSRedelivered", 11, "cannot ask", id="another such header"),
    pytest.param("a\u2013b = 1", 2, "unexpected", id="a dash in a name"),
    pytest.param("a = 1 AND ²x = 1", 11, "unexpected", id="a name that begins with a digit"),
    pytest.param("(a = 1", 7, "too early", id="an open parenthesis"),
    pytest.param("a = 1)", 6, "unexpected", id="a parenthesis too many"),
    pytest.param("a = 1 AND NOT", 14, "too early", id="NOT of nothing"),
    pytest.param("NULL = a", 1, "unexpected", id="null as a value"),
]


@pytest.mark.parametrize(("text", "position", "reason"), INVALID)
def test_a_selector_may_not_say(text: str, position: int, reason: str) -> None:
    with pytest.raises(InvalidSelector, match=reason) as refused:
        parse(text)
    assert refused.value.position == position
    assert str(refused.value).startswith(f"selector, character {position}: ")


def test_what_is_repeated_is_cut() -> None:
    with pytest.raises(InvalidSelector) as refused:
        parse(f"a = 1 {'b' * 4000}")
    assert len(str(refused.value)) < 100


# -- limits: `docs/design/hostile-input.md` 2.6, S1


def test_a_selector_has_so_many_characters() -> None:
    parse(f"a = '{'x' * (CHARACTERS_MAX - 6)}'")
    with pytest.raises(InvalidSelector, match="4096 characters"):
        parse(f"a = '{'x' * (CHARACTERS_MAX - 5)}'")


def test_a_selector_has_so_many_words() -> None:
    parse("a=" + "+".join(["1"] * 98) + "+-1")
    with pytest.raises(InvalidSelector, match=f"{TOKENS_MAX} words"):
        parse("a=-" + "+".join(["1"] * 98) + "+-1")


@pytest.mark.parametrize(
    ("before", "within", "behind"),
    [
        pytest.param("(", "a = 1", ")", id="parentheses"),
        pytest.param("NOT ", "a", "", id="NOT"),
    ],
)
def test_a_selector_nests_so_deep(before: str, within: str, behind: str) -> None:
    parse(before * DEPTH_MAX + within + behind * DEPTH_MAX)
    with pytest.raises(InvalidSelector, match="deeper than 16"):
        parse(before * (DEPTH_MAX + 1) + within + behind * (DEPTH_MAX + 1))


def test_signs_nest_too() -> None:
    parse(f"a = {'- ' * DEPTH_MAX}1")
    with pytest.raises(InvalidSelector, match="deeper than 16"):
        parse(f"a = {'- ' * (DEPTH_MAX + 1)}1")


def test_many_conditions_side_by_side_are_not_deep() -> None:
    parse(" OR ".join(["a = 1"] * 50))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a = " + "9" * 1_000_000, id="a number of a million digits"),
        pytest.param("(" * 1_000_000, id="a million parentheses"),
        pytest.param("NOT " * 1_000_000, id="a million NOTs"),
        pytest.param("a IN (" + ",".join(["'x'"] * 10_000) + ")", id="IN of ten thousand strings"),
        pytest.param("a LIKE '" + "%a" * 1000 + "'" + " " * 3000, id="blanks for a long pattern"),
    ],
)
def test_what_is_enormous_is_refused_unread(text: str) -> None:
    with pytest.raises(InvalidSelector, match="characters"):
        parse(text)
