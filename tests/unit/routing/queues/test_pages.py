"""Pages of a backlog: found by number, loaded in portions, dropped as a whole."""

from broker.message import NOWHERE, Origin
from broker.routing.queues.pages import FAR, PAGE, PagedEntries, Pages


def filled(*counts: int) -> Pages:
    """Return pages from number 0 on with these counts of messages, of 10 bytes each."""
    pages = Pages()
    for number, count in enumerate(counts):
        for slot in range(count):
            pages.page_of(number).add(slot, number * 100 + slot + 1, size=10, expires_at_ms=0)
    return pages


def numbers(pages: list[PagedEntries]) -> list[int]:
    return [int(page.number) for page in pages]


def test_a_page_counts_what_is_in_it() -> None:
    page = PagedEntries(3)
    page.add(0, 7, size=10, expires_at_ms=0)
    page.add(5, 9, size=20, expires_at_ms=5000)
    page.add(6, 8, size=30, expires_at_ms=4000)
    assert (page.count, page.bytes, page.expiring, page.first_expiry_ms) == (3, 60, 2, 4000)
    assert [(slot, number) for slot, number in enumerate(page.numbers) if number] == [
        (0, 7),
        (5, 9),
        (6, 8),
    ]


def test_a_page_knows_where_its_messages_came_from() -> None:
    one, other = Origin("one"), Origin("other")
    page = PagedEntries(0)
    for slot, origin in enumerate((one, one, other)):
        page.add(slot, slot + 1, size=1, expires_at_ms=0)
        page.came_from(slot, origin)
    assert [page.origin_of(slot) for slot in range(3)] == [one, one, other]
    assert PagedEntries(0).origin_of(0) is NOWHERE


def test_pages_are_found_by_number() -> None:
    pages = filled(1, 1, 1)
    assert [int(pages.index(number)) for number in (0, 1, 2, 3)] == [0, 1, 2, 3]
    assert [int(pages.number_at(index)) for index in (0, 2)] == [0, 2]
    assert pages.number_at(3) == FAR
    assert pages.is_behind(2 * PAGE)
    assert not pages.is_behind(3 * PAGE - 1)


def test_a_message_is_found_by_its_position() -> None:
    pages = filled(2, 1)
    assert [pages.has(position) for position in (0, 1, 2, PAGE, PAGE + 1, 5 * PAGE)] == [
        *(True, True, False),
        *(True, False, False),
    ]


def test_pages_are_taken_once_up_to_a_size() -> None:
    pages = filled(4, 4, 4, 4)
    assert numbers(pages.take(0, at_most=3, bytes_max=80)) == [0, 1]
    assert pages.take(0, at_most=3, bytes_max=80) == [], "they are on their way"
    assert numbers(pages.take(2, at_most=1, bytes_max=1)) == [2], "one at least"
    assert numbers(pages.take_at(3)) == [3]
    assert pages.take_at(3) == []


def test_what_comes_while_its_page_is_being_loaded_has_another() -> None:
    pages = filled(1)
    (asked,) = pages.take(0, at_most=1, bytes_max=100)
    pages.page_of(0).add(1, 9, size=10, expires_at_ms=0)
    assert pages.size() == 2
    pages.remove([asked])
    assert (pages.size(), pages.has(0), pages.has(1)) == (1, False, True)


def test_expired_pages_are_taken_wherever_they_are() -> None:
    pages = filled(1, 0, 1)
    pages.page_of(1).add(0, 50, size=10, expires_at_ms=1000)
    pages.page_of(4).add(0, 51, size=10, expires_at_ms=2000)
    assert pages.take_expired(999, at_most=10, bytes_max=100) == []
    assert numbers(pages.take_expired(2000, at_most=10, bytes_max=1)) == [1]
    taken = pages.take_expired(2000, at_most=10, bytes_max=100)
    assert numbers(taken) == [4]
    pages.remove(taken)
    assert pages.size() == 3


def test_whole_pages_are_dropped() -> None:
    pages = filled(3, 3, 3)
    dropped = pages.drop(7)
    assert numbers(dropped) == [0, 1]
    assert all(page.is_gone for page in dropped)
    assert pages.size() == 1
