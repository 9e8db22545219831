"""Changes to outcomes that their senders have not settled, within one batch."""

from storage.unsettled import StoredOutcome, UnsettledChanges


def outcome(link: str, tag: bytes) -> StoredOutcome:
    return StoredOutcome(
        container_id="client",
        link=link,
        tag=tag,
        outcome=b"",
        owner="",
        address="q",
        expiry_policy="never",
        timeout_s=0,
    )


def test_the_end_of_a_target_takes_back_what_was_kept_before() -> None:
    changes = UnsettledChanges()
    changes.keep(outcome("one", b"1"))
    changes.forget("client", "one", b"0")
    changes.keep(outcome("two", b"1"))
    changes.end("client", "one")
    assert list(changes.outcomes) == [("client", "two")]
    assert list(changes.ended) == [("client", "one")]


def test_the_last_change_of_an_outcome_counts() -> None:
    changes = UnsettledChanges()
    changes.keep(outcome("one", b"1"))
    changes.forget("client", "one", b"1")
    assert changes.outcomes == {("client", "one"): {b"1": None}}


def test_what_is_kept_after_the_end_of_a_target_stays() -> None:
    changes = UnsettledChanges()
    changes.keep(outcome("one", b"1"))
    changes.end("client", "one")
    changes.keep(outcome("one", b"2"))
    assert [list(each) for each in changes.outcomes.values()] == [[b"2"]]
