"""Checks of the queues of a running broker: D16 and D17."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from broker.doctor.checked_broker import CheckedBroker, Record
from broker.doctor.finding import CheckResult, failure, named, not_checked, warning, well

NO_BROKER: Final = "no broker answers that shows its queues"


def dead_letter_growth(checked: CheckedBroker) -> CheckResult:
    """Look for dead letters, and whether more come within `watch_s` (D16)."""
    before = _dead_letter_queues(checked)
    if before is None:
        return not_checked(NO_BROKER)
    if not before:
        return well("there is no queue of dead letters")
    time.sleep(checked.watch_s)
    after = _dead_letter_queues(checked) or {}
    grown = [
        f"{name} (+{_number(each, 'published') - _number(before[name], 'published')})"
        for name, each in after.items()
        if name in before and _number(each, "published") > _number(before[name], "published")
    ]
    remedy = (
        "`jms-broker message list QUEUE` shows the reason of each: mend its consumer, then"
        " `jms-broker message retry`"
    )
    if grown:
        return failure(f"dead letters come in within {checked.watch_s:g} s: {named(grown)}", remedy)
    held = [f"{name} ({each['messages']})" for name, each in after.items() if each["messages"]]
    if held:
        return warning(f"there are dead letters in {named(held)}", remedy)
    return well("there are no dead letters")


def _dead_letter_queues(checked: CheckedBroker) -> Mapping[str, Record] | None:
    """Return the queues that dead letters of other nodes go to, by name."""
    queues, topics = checked.told("queue"), checked.told("topic")
    if queues is None or topics is None:
        return None
    targets = {str(each["dead_letter"]) for each in (*queues, *topics)}
    return {str(each["name"]): each for each in queues if each["name"] in targets}


def queues_without_consumers(checked: CheckedBroker) -> CheckResult:
    """Look for queues with messages and without consumers (D17); those of dead letters may be."""
    queues, dead = checked.told("queue"), _dead_letter_queues(checked)
    if queues is None or dead is None:
        return not_checked(NO_BROKER)
    found = [
        f"{each['name']} ({each['messages']})"
        for each in queues
        if each["messages"] and not each["consumers"] and each["name"] not in dead
    ]
    if not found:
        return well("each queue with messages has a consumer")
    return warning(
        f"queues with messages and without consumers: {named(found)}",
        "start their consumers, or purge or delete the queues",
    )


def _number(record: Record, name: str) -> int:
    value = record[name]
    assert isinstance(value, int)
    return int(value)
