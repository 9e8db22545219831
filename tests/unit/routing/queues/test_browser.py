"""Browsers: which messages they see."""

import pytest

from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.backlogs import Backlogs
from broker.routing.queues.browser import Browsers
from tests.support.clock import WALL_START_MS
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, new_message

pytestmark = pytest.mark.requirement("RCV-04")


def test_a_browser_sees_every_message_once_and_changes_nothing() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b", b"c")
    browser = routing.browser(queue, 100)
    assert browser.copies == [b"a", b"b", b"c"]
    routing.give(queue, browser, 100)
    assert browser.copies == [b"a", b"b", b"c"]
    assert (queue.backlogs.waiting, queue.state.acquired) == (3, 0)
    assert routing.consumer(queue, 100).taken == [b"a", b"b", b"c"]


def test_a_browser_with_room_sees_what_arrives_later() -> None:
    routing = Routing()
    queue = routing.queue()
    browser = routing.browser(queue, 100)
    routing.put(queue, b"a")
    routing.put(queue, b"urgent", priority=9)
    routing.pump()
    routing.put(queue, b"b")
    routing.pump()
    assert browser.copies == [b"urgent", b"a", b"b"]


def test_higher_priorities_are_shown_first() -> None:
    routing = Routing()
    queue = routing.queue()
    for priority in (0, 9, 4, 9):
        routing.put(queue, b"%d" % priority, priority=priority)
    assert routing.browser(queue, 100).copies == [b"9", b"9", b"4", b"0"]


def test_a_browser_goes_on_where_its_credit_ended() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, *(b"%d" % number for number in range(200)))
    browser = routing.browser(queue, 3)
    assert browser.copies == [b"0", b"1", b"2"]
    routing.pump()
    routing.give(queue, browser, 1)
    assert browser.copies[3:] == [b"3"]
    routing.give(queue, browser, 1000)
    assert browser.copies == [b"%d" % number for number in range(200)]


def test_two_browsers_go_at_their_own_pace() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    slow, fast = routing.browser(queue, 1), routing.browser(queue, 5)
    routing.put(queue, b"c")
    routing.pump()
    assert (slow.copies, fast.copies) == ([b"a"], [b"a", b"b", b"c"])


def test_entries_that_a_consumer_holds_are_not_shown() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    consumer = routing.consumer(queue, 1)
    browser = routing.browser(queue, 100)
    assert browser.copies == [b"b"]
    consumer.dispose(Disposal.RELEASE, routing.batch)
    assert queue.backlogs.waiting == 2


@pytest.mark.requirement("PRD-04")
def test_what_has_expired_is_not_shown_though_it_still_waits() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(b"mortal", expires_at_ms=WALL_START_MS + 10), routing.batch)
    routing.put(queue, b"immortal")
    routing.clock.advance(10)
    browser = routing.browser(queue, 100)
    assert browser.copies == [b"immortal"]
    assert queue.backlogs.waiting == 2


def test_a_drained_browser_is_told_once_it_has_seen_everything() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    browser = routing.browser(queue)
    routing.give(queue, browser, 5, drain=True)
    assert (browser.copies, browser.drains, browser.credit) == ([b"a"], 1, 0)


def test_a_drained_browser_without_room_is_told_only_if_it_has_seen_everything() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    browser = routing.browser(queue)
    browser.held = True
    routing.give(queue, browser, 5, drain=True)
    assert browser.drains == 0, "a is still to be shown"
    routing.consumer(queue, 1)
    assert browser.drains == 1, "a has gone"


def test_a_browser_that_has_left_sees_nothing_more() -> None:
    routing = Routing()
    queue = routing.queue()
    gone, there = routing.browser(queue, 5), routing.browser(queue, 5)
    queue.detach_consumer(gone, queue, routing.batch)
    routing.put(queue, b"a")
    routing.pump()
    assert (gone.copies, there.copies) == ([], [b"a"])


def test_strangers_to_the_browsers_change_nothing() -> None:
    browsers, stranger = Browsers(), RecordingConsumer(5)
    browsers.ready(stranger)
    browsers.leave(stranger)
    assert not browsers.has(stranger)
    assert not browsers.any_ready
    assert not browsers.find_more(stranger, Backlogs(), None)


@pytest.mark.requirement("TMP-03")
def test_browsers_are_told_that_the_queue_is_gone() -> None:
    routing = Routing()
    queue = routing.temporary_queue()
    browser = routing.browser(queue, 5)
    routing.router.delete(queue, routing.batch)
    assert browser.lost_its_node
    assert queue.consumers.count() == 0
