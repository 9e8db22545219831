"""The statements that write outcomes; `tests/contract/test_unsettled.py` has what they do."""

from storage.sql import unsettled
from storage.unsettled import StoredOutcome, UnsettledChanges


def test_targets_end_before_outcomes_are_replaced() -> None:
    changes = UnsettledChanges()
    changes.end("client", "one")
    changes.keep(
        StoredOutcome(
            container_id="client",
            link="two",
            tag=b"t",
            outcome=b"o",
            owner="alice",
            address="q",
            expiry_policy="link-detach",
            timeout_s=7,
        )
    )
    assert unsettled.statements_of(changes) == [
        (unsettled.DELETE_TARGET, [("client", "one")]),
        (unsettled.DELETE, [("client", "two", b"t")]),
        (
            unsettled.INSERT,
            [("client", "two", b"t", b"o", "alice", "q", "link-detach", 7)],
        ),
    ]


def test_nothing_is_written_without_changes() -> None:
    assert unsettled.statements_of(UnsettledChanges()) == []
