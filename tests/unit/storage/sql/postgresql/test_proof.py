"""The proof that a broker leads: it counts as long as the session with the lock is open."""

from __future__ import annotations

import pytest

from storage.sql.postgresql.proof import NEVER, Proof
from storage.sql.postgresql.session import Session
from tests.support import postgres


@pytest.fixture
async def session() -> Session:
    server = postgres.server()
    opened = Session(server.url(server.database()), "jms-broker 1 first")
    await opened.connect()
    return opened


async def test_the_last_moment_counts_until_it_is_void(session: Session) -> None:
    told: list[int] = []
    proof = Proof()
    proof.when_void = lambda: told.append(proof.us)
    assert proof.us == NEVER
    for sent_us in (5, 7, 6):  # an answer may be late
        proof.add(session, sent_us)
    assert proof.us == 7
    proof.void()
    assert told == [NEVER]
    session.drop()
    proof.add(session, 8)
    assert proof.us == NEVER, "its answer was on the way when the session ended"
