"""References to large bodies, and bodies that are not yet saved."""

from broker.large_body import LargeBody, LargeBodyRef, LargeBodyReferences
from storage.records import StoredContent


class Recorder(LargeBodyReferences):
    """References to contents; it records those that were let go."""

    def __init__(self) -> None:
        self.let_go_of: list[int] = []

    def hold(self, content: int) -> LargeBodyRef:
        return LargeBodyRef(content, self)

    def let_go(self, content: int) -> None:
        self.let_go_of.append(content)


def test_a_hold_ends_with_the_last_body_that_has_it() -> None:
    references = Recorder()
    stored = StoredContent(number=7, size=100, beginning=b"x")
    one = LargeBody(stored, references.hold(7), is_saved=True)
    other = one
    del one
    assert references.let_go_of == []
    del other
    assert references.let_go_of == [7]


def test_whoever_waits_is_told_once_it_is_saved() -> None:
    stored = StoredContent(number=7, size=100, beginning=b"x")
    large = LargeBody(stored, Recorder().hold(7), is_saved=False)
    told: list[str] = []
    large.call_when_saved(lambda: told.append("waited"))
    assert not told
    large.saved()
    assert told == ["waited"]
    large.call_when_saved(lambda: told.append("at once"))
    assert told == ["waited", "at once"]
