"""The attacks by name: their actions, their brokers, and the documented promises about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED, UNAUTHORIZED_ACCESS
from tests.attacks import (
    arriving,
    entering,
    filling,
    forging,
    holding,
    idling,
    intruding,
    users,
    waiting,
)
from tests.attacks.plan import MEBIBYTE, MEMORY, PASSWORD, SQLITE, USER, Attack, Work

BOTH: Final = (SQLITE, MEMORY)

STALL: Final = "stall_timeout_ms = 3000\n"

WITH_A_USER: Final = f'user = "{USER}"\npassword = "{PASSWORD}"\nlimit_loopback = false\n'
"""All 400 logins are to wait for their password check: none gives way to the limit of a source."""


def _of_a_user(words: str, work: Work) -> Attack:
    """Return an attack of a user on another, on a broker with users and rules."""
    return Attack(
        words=words,
        work=work,
        stores=(MEMORY,),
        settings=users.SETTINGS,
        prepare=users.write_users,
        condition=UNAUTHORIZED_ACCESS,
    )


OF_USERS: Final[dict[str, Attack]] = {
    "links": _of_a_user("another user's links, live ones and one to be resumed", intruding.links),
    "client-ids": _of_a_user(
        "container-ids of another user, held and reserved", intruding.client_ids
    ),
    "close-existing": _of_a_user(
        "sole use of another user's container-id", intruding.close_existing
    ),
    "subscriptions": _of_a_user(
        "resuming and replacing another user's subscription", intruding.subscriptions
    ),
    "lookups": _of_a_user("looking another user's subscription up", intruding.lookups),
    "user-id": _of_a_user("messages in another user's name", forging.user_ids),
    "reply-to": _of_a_user("another user's queues as reply addresses", forging.reply_to),
    "dead-letters": _of_a_user("messages that the broker moves", forging.dead_letters),
}
"""Attacks of one user on another, each beside a healthy client of the user that is attacked."""

GROWN_MIB: Final = 10.0
"""Most MiB that logins and failed handshakes leave behind, however many there are."""

QUIET: Final = '[log]\nlevel = "warning"\n'
"""The log is kept by this program: a line for each of a million logins would fill its memory."""


def _counted(words: str, work: Work, settings: str = "") -> Attack:
    """Return an attack that makes a number of connections, however long that takes."""
    return Attack(
        words=words,
        work=work,
        settings=settings + QUIET,
        probes=("request", "login"),
        lasts_s=3600.0,
        grown_mib=GROWN_MIB,
    )


def _silent(count: int, work: Work, peak_mib: float) -> Attack:
    return Attack(
        words=f"{count:,} connections that do not log in",
        work=work,
        settings=WITH_A_USER.replace("limit_loopback = false\n", ""),
        probes=("request", "login"),
        peak_mib=peak_mib,
    )


BEFORE_LOGIN: Final[dict[str, Attack]] = {
    "handshakes": replace(
        _counted("10,000 failed TLS handshakes", arriving.handshakes, arriving.TLS),
        prepare=arriving.write_certificate,
        probes=("request", "tls"),
    ),
    "logins-anonymous": _counted("1,000,000 logins without a name", arriving.logins_anonymous),
    "logins-scram": _counted("100,000 logins by SCRAM", arriving.logins_scram, WITH_A_USER),
    "logins-plain": _counted("10,000 logins by PLAIN", arriving.logins_plain, WITH_A_USER),
    "silent-1000": _silent(1000, idling.silent_1000, 64.0),
    "silent-5000": _silent(5000, idling.silent_5000, 320.0),
}
"""Attacks by numbers of connections, each with a bound on the memory that they cost."""

ATTACKS: Final[dict[str, Attack]] = {
    "hoarding": Attack(
        words="consumers that settle nothing",
        work=holding.hoarding,
        stores=BOTH,
        waits_on=(MEMORY,),
    ),
    "transactions": Attack(
        words="25 open transactions of 60 MiB",
        work=holding.transactions,
        condition=RESOURCE_LIMIT_EXCEEDED,
    ),
    "unfinished": Attack(
        words="deliveries that never end, five connections",
        work=holding.unfinished,
        stores=BOTH,
        condition=RESOURCE_LIMIT_EXCEEDED,
    ),
    "backlog": Attack(
        words="non-durable messages that nobody consumes",
        work=waiting.backlog,
        stores=BOTH,
        waits_on=(MEMORY,),
    ),
    "slow-subscribers": Attack(
        words="50 subscribers that settle nothing",
        work=waiting.slow_subscribers,
        stores=BOTH,
        waits_on=(MEMORY,),
    ),
    "unread-deliveries": Attack(
        words="consumers that never read",
        work=waiting.unread_deliveries,
        settings=STALL,
    ),
    "unread-answers": Attack(
        words="attaches and detaches without end, by clients that never read",
        work=waiting.unread_answers,
        settings=STALL,
    ),
    "queues": Attack(
        words="queues made by naming them",
        work=entering.queues_by_name,
        settings="auto_create_max = 10000\n",
        condition=RESOURCE_LIMIT_EXCEEDED,
        naming="auto_create_max",
    ),
    "logins": Attack(
        words="400 wrong passwords at once, from another address",
        work=entering.logins_from_elsewhere,
        settings=WITH_A_USER,
        condition="sasl sys-temp",
        probes=("request", "login"),
    ),
    "logins-here": Attack(
        # logins from that address are throttled, those of the healthy client with them
        words="the same from the healthy client's address",
        work=entering.logins_from_here,
        settings=WITH_A_USER,
        condition="sasl sys-temp",
    ),
    "half-requests": Attack(
        words="400 half requests over HTTP",
        work=entering.half_requests,
        settings="[http]\nport = 0\n",
        probes=("request", "http"),
    ),
    "full-disk": Attack(
        words="another program takes the whole disk",
        work=filling.full_disk,
        settings=f"disk_free_min = {filling.RESERVE_MIB * MEBIBYTE}\n",
        waits_on=(SQLITE,),
        disk_mib=filling.DISK_MIB,
    ),
    **OF_USERS,
    **BEFORE_LOGIN,
}

GROUPS: Final = {"of-users": OF_USERS, "before-login": BEFORE_LOGIN}
