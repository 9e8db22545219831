"""The order of ready entries, compared with a sorted list."""

from hypothesis import given
from hypothesis import strategies as st

from broker.routing.entries.entry import QueueEntry
from broker.routing.queues.backlog import CHUNK, Backlog
from tests.support.routing import Routing, new_message

MESSAGE = new_message()
QUEUE = Routing().queue()


def new_entry(position: int) -> QueueEntry:
    return QueueEntry(QUEUE, MESSAGE, position)


def filled(count: int) -> tuple[Backlog, list[QueueEntry]]:
    """Return a backlog of `count` entries, and the entries in order."""
    backlog = Backlog()
    entries = [new_entry(position) for position in range(count)]
    for entry in entries:
        backlog.append(entry)
    return backlog, entries


def chunks(backlog: Backlog) -> int:
    """Return the number of chunks, which is the cost of the backlog."""
    return len(backlog._chunks)


def drained(backlog: Backlog) -> list[int]:
    """Remove all entries in their order; return their positions."""
    positions = []
    while (entry := backlog.first()) is not None:
        backlog.remove(entry)
        positions.append(int(entry.position))
    return positions


def test_an_empty_backlog_has_no_first_entry() -> None:
    backlog = Backlog()
    assert backlog.first() is None
    assert backlog.after(-1, 10) == []
    assert (backlog.waiting, backlog.next_position) == (0, 0)


def test_the_first_entry_stays_until_it_is_removed() -> None:
    backlog, entries = filled(3)
    assert backlog.first() is backlog.first() is entries[0]
    assert backlog.waiting == 3


def test_a_backlog_tells_what_waits_in_it() -> None:
    backlog, entries = filled(3 * CHUNK)
    for entry in entries[: CHUNK + 1]:
        backlog.remove(entry)
    assert [backlog.has(entry) for entry in entries] == [False] * (CHUNK + 1) + [True] * (
        2 * CHUNK - 1
    )
    backlog.put_back(entries[0])
    assert (backlog.has(entries[0]), backlog.has(entries[1])) == (True, False)
    assert not backlog.has(new_entry(3 * CHUNK - 1))
    assert not backlog.has(new_entry(9 * CHUNK))


def test_entries_leave_in_the_order_in_which_they_came() -> None:
    backlog, _ = filled(5 * CHUNK + 3)
    assert drained(backlog) == list(range(5 * CHUNK + 3))
    assert backlog.waiting == 0


def test_a_queue_that_never_gets_long_makes_do_with_one_chunk() -> None:
    backlog = Backlog()
    for position in range(10 * CHUNK):
        entry = new_entry(position)
        backlog.append(entry)
        assert backlog.first() is entry
        backlog.remove(entry)
    assert chunks(backlog) == 1


def test_an_entry_that_nobody_takes_does_not_keep_the_gap_behind_it() -> None:
    backlog, entries = filled(1)
    for position in range(1, 10 * CHUNK):
        entry = new_entry(position)
        backlog.append(entry)
        backlog.remove(entry)
    assert backlog.first() is entries[0]
    assert chunks(backlog) == 2
    assert drained(backlog) == [0]


def test_an_entry_returns_to_its_place_though_everything_near_it_has_gone() -> None:
    backlog, entries = filled(4 * CHUNK)
    for entry in entries[: 3 * CHUNK]:
        backlog.remove(entry)
    backlog.put_back(entries[CHUNK + 1])
    backlog.put_back(entries[1])
    backlog.put_back(entries[0])
    assert drained(backlog) == [0, 1, CHUNK + 1, *range(3 * CHUNK, 4 * CHUNK)]


def test_an_emptied_chunk_at_the_head_goes_when_an_earlier_one_comes_back() -> None:
    backlog, entries = filled(3 * CHUNK)
    for entry in entries[: 2 * CHUNK]:
        assert backlog.first() is entry
        backlog.remove(entry)
    assert chunks(backlog) == 2, "the head is empty, and goes when the next entry is asked for"
    backlog.put_back(entries[0])
    assert chunks(backlog) == 2
    assert drained(backlog) == [0, *range(2 * CHUNK, 3 * CHUNK)]


def test_an_entry_returns_into_a_backlog_that_has_run_empty() -> None:
    backlog, entries = filled(3 * CHUNK)
    assert len(drained(backlog)) == 3 * CHUNK
    backlog.put_back(entries[5])
    backlog.append(new_entry(3 * CHUNK))
    assert drained(backlog) == [5, 3 * CHUNK]
    assert chunks(backlog) == 1


def test_a_new_entry_may_follow_a_chunk_that_came_back_alone() -> None:
    backlog, entries = filled(CHUNK)
    assert len(drained(backlog)) == CHUNK
    later = new_entry(CHUNK)
    backlog.append(later)
    backlog.put_back(entries[CHUNK - 1])
    backlog.remove(later)
    backlog.append(new_entry(CHUNK + 1))
    assert drained(backlog) == [CHUNK - 1, CHUNK + 1]


def test_entries_after_a_position_come_in_order_up_to_the_limit() -> None:
    backlog, entries = filled(3 * CHUNK)
    for entry in entries[10 : 2 * CHUNK]:
        backlog.remove(entry)
    assert backlog.after(-1, 3) == entries[:3]
    assert backlog.after(7, 4) == [*entries[8:10], *entries[2 * CHUNK : 2 * CHUNK + 2]]
    assert backlog.after(3 * CHUNK - 2, 10) == entries[-1:]
    assert backlog.after(3 * CHUNK - 1, 10) == []


def test_a_deep_backlog_that_one_consumer_took_comes_back_in_order() -> None:
    """If a step looked at all entries, this test would take minutes."""
    count = 20_000
    backlog, entries = filled(count)
    for entry in entries:
        backlog.remove(entry)
    for entry in entries:
        backlog.put_back(entry)
        assert backlog.first() is entries[0]
    assert drained(backlog) == list(range(count))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, CHUNK + 1)),
        st.tuples(st.just("take first"), st.integers(1, CHUNK + 1)),
        st.tuples(st.just("take"), st.integers(0, 2**16)),
        st.tuples(st.just("put back"), st.integers(0, 2**16)),
    ),
    max_size=40,
)


class Model:
    """A backlog, and the entries that must be in it."""

    def __init__(self) -> None:
        self.backlog = Backlog()
        self.waiting: dict[int, QueueEntry] = {}
        self.taken: list[QueueEntry] = []

    def step(self, action: str, number: int) -> None:
        """Carry out one step on the backlog and the model."""
        match action:
            case "append":
                for _ in range(number):
                    entry = new_entry(len(self.waiting) + len(self.taken))
                    self.backlog.append(entry)
                    self.waiting[int(entry.position)] = entry
            case "take first":
                for _ in range(min(number, len(self.waiting))):
                    first = self.backlog.first()
                    assert first is self.waiting[min(self.waiting)]
                    self.backlog.remove_first()
                    self.taken.append(self.waiting.pop(int(first.position)))
            case "take" if self.waiting:
                self.take(self.waiting[sorted(self.waiting)[number % len(self.waiting)]])
            case "put back" if self.taken:
                entry = self.taken.pop(number % len(self.taken))
                self.backlog.put_back(entry)
                self.waiting[int(entry.position)] = entry

    def take(self, entry: QueueEntry) -> None:
        self.backlog.remove(entry)
        self.taken.append(self.waiting.pop(int(entry.position)))


@given(STEPS)
def test_whatever_happens_the_order_is_that_of_a_sorted_list(steps: list[tuple[str, int]]) -> None:
    model = Model()
    for action, number in steps:
        model.step(action, number)
        assert model.backlog.waiting == len(model.waiting)
        assert chunks(model.backlog) <= len(model.waiting) + 2
    everything = [model.waiting[position] for position in sorted(model.waiting)]
    assert model.backlog.after(-1, 10**6) == everything
    assert drained(model.backlog) == sorted(model.waiting)
