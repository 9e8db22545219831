"""A healthy broker for tests of the doctor: its settings, store, users, rules, certificates."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from broker.audit.record import AuditEvent, body_of
from broker.audit.writer import AuditLimits, AuditWriter, PendingRecord
from broker.cli.answering_broker import AnsweringBroker
from broker.cli.requests import managed
from broker.doctor.checked_broker import CheckedBroker, RunningBroker
from broker.doctor.checks import examine
from broker.doctor.finding import DoctorFinding
from broker.security.users import Users
from broker.settings import given_settings
from storage.sql.sqlite.store import SqliteStore
from tests.support.certificates import SERVER_NAME, Authority

RULES: Final = """\
[[rule]]
id = "orders"
who = ["role:ordering"]
can = ["send", "receive"]
on = ["queue:orders.#"]
"""

PASSWORD: Final = "correct horse"


class DoctorSite:
    """The files of one broker in a folder that `make_site` has filled, and its settings.

    `watch_s` is for how long the doctor looks for new dead letters.
    """

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.database: Final = folder / "data" / "store.db"
        self.users: Final = folder / "users.toml"
        self.rules: Final = folder / "acl.toml"
        self.certificate: Final = folder / "server.pem"
        self.key: Final = folder / "server.key"
        self.watch_s = 0.0
        self.settings: Final[dict[str, object]] = {
            "store": f"sqlite:///{self.database}",
            "connections_max": 100,
            "disk_free_min": 1024,
            "users_file": self.users,
            "acl_file": self.rules,
            "listener": [self.listener()],
        }

    def issue(self, name: str, *, expired: bool = False) -> tuple[Path, Path]:
        """Write a certificate and its key, both called `name`, and return their paths."""
        certificate, key = Authority().issue(SERVER_NAME, expired=expired).write(self.folder, name)
        key.chmod(0o600)
        return certificate, key

    def listener(self, **tls: object) -> dict[str, object]:
        """Return the listener with TLS, which other machines reach."""
        files = {"certificate": self.certificate, "key": self.key, **tls}
        return {"name": "out", "kind": "amqps", "bind": "0.0.0.0", "port": 0, "tls": files}

    def record_backup(self, at_s: float) -> None:
        """Make the audit one record: a backup at that time, in s since 1970."""
        audit = Path(f"{self.database}.audit")
        for file in audit.glob("*"):
            file.unlink()
        writer = AuditWriter(audit, AuditLimits(2**20, 2**24, 0), wall_ms=lambda: int(at_s * 1000))
        writer.open()
        event = AuditEvent(action="backup.done", resource="backup:/copy.db")
        writer.append([PendingRecord(int(at_s * 1000), body_of(event))])
        writer.close()

    def findings(self, running: RunningBroker | None) -> dict[str, DoctorFinding]:
        """Return the finding of each code."""
        checked = CheckedBroker(
            settings=given_settings(**self.settings),
            running=running,
            now_s=time.time(),
            watch_s=self.watch_s,
        )
        return {each.code: each for each in examine(checked)}


def make_site(folder: Path) -> DoctorSite:
    """Write the files of a healthy broker to an empty folder."""
    site = DoctorSite(folder)
    site.issue("server")
    site.rules.write_text(RULES)
    Users(site.users).add("shop", PASSWORD, roles=["ordering"])
    asyncio.run(_made(site.database))
    site.record_backup(time.time())
    return site


async def _made(database: Path) -> None:
    """Make an empty store."""
    store = SqliteStore(database)
    await store.open()
    await store.close()


@contextmanager
def answering(url: str) -> Iterator[AnsweringBroker]:
    """Yield the broker at `url` as the doctor asks it."""
    with managed(url, 10.0) as requests:
        yield AnsweringBroker(requests)
