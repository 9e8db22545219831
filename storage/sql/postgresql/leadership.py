"""A group of brokers on one store: who leads, and how long the leader may go on without proof.

One member holds the lock of the store and leads; the others, the standbys, ask for the lock ten
times a second. A leader that is silent must lose it: PostgreSQL ends a session that is idle for
`silence_ms`, and a standby ends one that PostgreSQL would wait for without end, in a COPY whose
client has stopped. No clocks of two machines are compared, and none that may be set counts.

The leader, for its part, counts on the lock for less than that time since a statement that was
answered has been sent (`Store.proof_us`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, final

import asyncpg
from sqlalchemy import Connection

from storage.sql.postgresql import heir, postgres
from storage.sql.postgresql.lock import HELD, TRY_LOCK, UNLOCK
from storage.steady_clock import steady_us

if TYPE_CHECKING:
    from storage.sql.postgresql.session import Session

POLL_S: Final = 0.1
"""Seconds between two attempts of a standby to get the lock."""

HEAD_START_US: Final = 1_000_000
"""Microseconds that a leader has to take the lock again after a loss of the database, which it
shares with the standbys. It tries every 0.2 s, and takes as long as they do to connect."""

DEAD_S: Final = 5.0
"""Seconds without an answer after which a session is dropped: the kernel would take minutes."""

PING_S: Final = 0.5
"""Seconds between two statements by which an idle leader shows that it is there."""

NO_ADDRESSES: Final[Mapping[str, tuple[str, int]]] = {}

APPLICATION: Final = f"{postgres.APPLICATION}/"
"""Beginning of the names of the members' sessions; the member's name and a random part follow."""

WITNESS: Final = f"{postgres.APPLICATION} witness"
"""Name of a second session of a broker, which asks what the first one does."""

HIDDEN: Final = (
    "the leader is another user of the database, and what it does cannot be seen: let all brokers"
    " of the group use one user, or GRANT pg_read_all_stats, pg_signal_backend"
)

LEADER: Final = f"""
SELECT pid, application_name, coalesce(host(client_addr), 'this host') AS host,
    (extract(epoch FROM state_change) * 1000000)::bigint AS since_us,
    wait_event_type = 'Client' AS waits, bytes_processed AS copied, state IS NULL AS is_hidden
FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) LEFT JOIN pg_stat_progress_copy USING (pid)
WHERE {HELD}
"""  # noqa: S608
"""The session that holds the lock. `waits`: for its client; `copied`: bytes of a COPY that it does,
if any; `is_hidden`: this user may not see what it does."""

WORKS: Final = f"""
SELECT state = 'active' AND coalesce(wait_event_type, '') <> 'Client'
    AND coalesce(wait_event, '') <> 'SyncRep'
FROM pg_stat_activity JOIN pg_locks USING (pid)
WHERE pid = $1 AND application_name = $2 AND {HELD}
"""  # noqa: S608
"""Whether a session holds the lock, and does what the server will finish without its client."""


WAITS: Final = "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $1"
"""Whether a session's commit waits for a standby server."""


@final
class Group:
    """The group that a broker is a member of, under a name that no other member has.

    `addresses` are the host and port of this member for clients, by the kind of listener. The
    records of the messages, as a standby keeps them, take at most `warm_bytes` of memory. If it
    `prefers`, this member is to lead whenever it is up.
    """

    def __init__(
        self,
        name: str,
        *,
        silence_ms: int,
        warm_bytes: int = 0,
        prefers: bool = False,
        addresses: Mapping[str, tuple[str, int]] = NO_ADDRESSES,
    ) -> None:
        self.name: Final = name
        self.addresses: Final = addresses
        self.silence_ms: Final = silence_ms
        self.warm_bytes: Final = warm_bytes
        self.prefers: Final = prefers
        self.application: Final = f"{APPLICATION}{name}/{secrets.token_hex(4)}"
        self.session_settings: Final[Mapping[str, str]] = {
            "idle_session_timeout": str(silence_ms),
            "idle_in_transaction_session_timeout": str(silence_ms * 2 // 3),
        }
        """Settings of the member's sessions, over those of all brokers."""


def member_name(application: str) -> str:
    """Return the name of the member with a session of that name, empty if it is no member."""
    if not application.startswith(APPLICATION):
        return ""
    return application.removeprefix(APPLICATION).rpartition("/")[0]


@final
class Sample:
    """The leader's session as a standby sees it.

    `since_us` is when the session began what it does, by the server's clock, which an operator may
    set; `waits` whether that is to wait for its client. `copied` are the bytes that a COPY has
    received, None outside of one.
    """

    def __init__(self, pid: int, *, since_us: int, waits: bool, copied: int | None) -> None:
        self.waits: Final = waits
        self.state: Final = (pid, since_us, copied)
        """It changes whenever the session hears from its client."""


@final
class Silence:
    """The time since the leader's session has heard anything from its client."""

    def __init__(self) -> None:
        self._seen: Sample | None = None
        self._since_us = 0

    def lasts_us(self, sample: Sample, now_us: int) -> int:
        """Return how long it has lasted, in µs, as the last samples show.

        `now_us` is this broker's steady clock: no clock that is set counts. A COPY in which bytes
        arrive now and then waits for its client nearly all the time.
        """
        seen, self._seen = self._seen, sample if sample.waits else None
        if not sample.waits:
            return 0
        if seen is None or seen.state != sample.state:
            self._since_us = now_us
        return now_us - self._since_us


@final
class Candidate:
    """A standby that waits for the lock, and ends the session of a leader that is silent.

    `meanwhile` is called between two attempts to get the lock, for work that takes a moment.
    `told` is called with the name of each new leader, and with what is wrong with it, if anything.
    The name is empty if none leads, or if the leader is nearly silent for too long.
    """

    def __init__(
        self,
        group: Group,
        turn: asyncio.Lock,
        told: Callable[[str, str], None],
        *,
        meanwhile: Callable[[Connection], None],
    ) -> None:
        self._name: Final = group.name
        self._silence_us: Final = group.silence_ms * 1000
        self._silence: Final = Silence()
        self._turn: Final = turn
        self._told: Final = told
        self._meanwhile: Final = meanwhile
        self._leader = ""
        self._obstacle = ""
        self._yields = False

    async def wait(self, session: Session) -> None:
        """Return once `session` has the lock. Others may use the session in turn."""
        connected_us = steady_us()
        while True:
            # also if another user of the session has the turn, and waits for its answer in vain
            with session.dropped_after(DEAD_S):
                has_lock = await self._step(session, connected_us)
            if has_lock:
                return
            await asyncio.sleep(POLL_S)

    async def _step(self, session: Session, connected_us: int) -> bool:
        """Return whether `session` has the lock now; else do a portion of a standby's work."""
        async with self._turn:
            if self._yields and steady_us() - connected_us >= HEAD_START_US:
                self._yields = False
            if not self._yields and await self._has_lock(session):
                return True
            await self._look(session.raw)
            await session.run(self._meanwhile)
        return False

    async def _has_lock(self, session: Session) -> bool:
        """Return whether `session` has the lock now, and this member may lead."""
        if not await session.raw.fetchval(TRY_LOCK):
            return False
        if not await session.run(partial(heir.is_another, name=self._name)):
            return True
        await session.raw.fetchval(UNLOCK)
        return False

    async def _look(self, raw: asyncpg.Connection) -> None:
        row = await raw.fetchrow(LEADER)
        if row is None:
            self.tell("", "")
            return
        if row["is_hidden"]:
            self.tell(leader_of(row), HIDDEN)
            return
        lasts_us = self._silence.lasts_us(_sample(row), steady_us())
        self.tell("" if lasts_us >= self._silence_us // 2 else leader_of(row), "")
        if lasts_us >= self._silence_us:
            await raw.fetchval("SELECT pg_terminate_backend($1)", row["pid"])

    def lost(self, obstacle: str) -> None:
        """Note that the session is lost. If the database is, so is the leader's: it goes first."""
        self._yields = self._yields or self._leader != ""
        self.tell("", obstacle)

    def tell(self, leader: str, obstacle: str) -> None:
        """Tell of a leader and an obstacle, unless that is what was told last."""
        if (leader, obstacle) != (self._leader, self._obstacle):
            self._leader, self._obstacle = leader, obstacle
            self._told(leader, obstacle)


@final
class Witness:
    """A second session, which sees the first one at work while a statement of that one takes long.

    For the leader of a group it counts as proof that a slow disk of the server is being synced. A
    commit that waits for a standby server does not: on a primary that was left behind, such a wait
    never ends.
    """

    def __init__(self, url: str) -> None:
        self._url: Final = url
        self._turn: Final = asyncio.Lock()
        self._place: postgres.Place | None = None
        self._raw: asyncpg.Connection | None = None

    async def sees(self, session: Session) -> bool:
        """Return whether `session` holds the lock, and the server works on its statement."""
        return await self._finds(session, WORKS, session.raw.get_server_pid(), session.application)

    async def waits_for_standby(self, session: Session) -> bool:
        """Return whether a commit of `session` waits for a standby server of the database."""
        return await self._finds(session, WAITS, session.raw.get_server_pid())

    async def _finds(self, session: Session, text: str, *arguments: object) -> bool:
        """Return the answer to `text` of the server that `session` is with, False without one.

        A connection answers one question at a time: a second one would end it.
        """
        async with self._turn:
            return await self._answer(session, text, *arguments)

    async def _answer(self, session: Session, text: str, *arguments: object) -> bool:
        try:
            async with asyncio.timeout(PING_S):
                if self._place != session.place:
                    self.drop()
                if self._raw is None or self._raw.is_closed():
                    self._place = session.place
                    self._raw = await postgres.connect(self._url, WITNESS, place=self._place)
                return await self._raw.fetchval(text, *arguments) is True
        except postgres.FAILURES:
            self.drop()
            return False

    def drop(self) -> None:
        """Close its connection at once."""
        if self._raw is not None:
            self._raw.terminate()
            self._raw = None


def leader_of(row: asyncpg.Record) -> str:
    """Return the name of the member that `LEADER` has found; of another broker, its session."""
    application = row["application_name"] or "a session of another user"
    return member_name(application) or f"{application} from {row['host']}"


def _sample(row: asyncpg.Record) -> Sample:
    return Sample(
        row["pid"],
        since_us=row["since_us"],
        waits=bool(row["waits"]),
        copied=row["copied"],
    )
