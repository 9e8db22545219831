"""Uses of contents: which messages refer to which content."""

from storage.contents import ContentUses


def test_what_the_last_user_lets_go_is_garbage() -> None:
    uses = ContentUses()
    uses.hold(7)
    uses.add(1, 7, "a")
    uses.add(2, 7, "b")
    assert uses.any()
    assert (uses.content_of(1), uses.content_of(3)) == (7, None)
    assert uses.remove([1, 3]) == [1]
    uses.let_go(7)
    assert uses.garbage == []
    assert uses.remove([2, 1]) == [2]
    assert uses.garbage == [7]
    assert not uses.any()


def test_a_queue_takes_its_own_messages_along() -> None:
    uses = ContentUses()
    for message, (content, queue) in enumerate([(7, "a"), (8, "b"), (9, "a")]):
        uses.add(message, content, queue)
    assert uses.remove_queue("a") == [0, 2]
    assert uses.remove_queue("a") == []
    assert (uses.garbage, uses.content_of(1)) == ([7, 9], 8)
