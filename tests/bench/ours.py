"""This project's broker, on each of its stores."""

import os
import re
import tempfile
from pathlib import Path
from typing import Final

from tests.bench.certificate import certificate
from tests.bench.disk import disk_folder
from tests.bench.places import ROOT, BenchError
from tests.bench.server import Server
from tests.support import postgres

INSTALLED: Final = ROOT / ".venv" / "bin" / "jms-broker"


def manner_of(pid: int) -> str:
    """Return "compiled" if the broker's process has the engine's shared objects mapped."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return "compiled" if re.search(r"/broker/amqp/\w+\.cpython\S+\.so", maps) else "interpreted"


class OurBroker(Server):
    """This project's broker as `make run` installs it, or as it is installed elsewhere.

    Without a `store` it uses the default of `serve`, SQLite.
    """

    ready = re.compile(r"ready amqp://127\.0\.0\.1:(\d+) (?:.*tls=amqps://127\.0\.0\.1:(\d+))?.*\n")
    has_tls = True

    def __init__(
        self, program: Path = INSTALLED, *, name: str = "jms-broker", store: str = ""
    ) -> None:
        super().__init__()
        self.name = name
        self._program = program
        self._store = store

    def command(self) -> list[str]:
        if not self._program.exists():
            raise BenchError(f"{self._program} is missing: `make build` installs it")
        command = [str(self._program), "serve", "--port", "0"]
        if self.with_tls:
            command += ["--config", str(self._configuration())]
        return command + (["--store", self._store] if self._store else [])

    def _configuration(self) -> Path:
        """Write settings with a second listener, which speaks TLS; return their file."""
        pem, key = certificate().write(self.folder, "server")
        path = self.folder / "broker.toml"
        path.write_text(
            '[[listener]]\nname = "tls"\nkind = "amqps"\nbind = "127.0.0.1"\nport = 0\n'
            f'[tls]\ncertificate = "{pem}"\nkey = "{key}"\n'
        )
        return path

    def manner(self) -> str:
        return manner_of(self.pid)


class OnPostgres(OurBroker):
    """This project's broker on a PostgreSQL server of its own, which counts as part of it.

    The server is as `initdb` makes it, except for where it listens.
    """

    def __init__(self) -> None:
        super().__init__(name="PostgreSQL")
        self._database: postgres.Server | None = None

    @property
    def database(self) -> postgres.Server:
        assert self._database is not None, "not started"
        return self._database

    def command(self) -> list[str]:
        programs = postgres.binaries()
        if programs is None:
            raise BenchError(
                f"no PostgreSQL {postgres.OLDEST} or newer: apt-get install postgresql"
            )
        folder = Path(tempfile.mkdtemp(prefix="bench-pg-", dir=disk_folder()))
        variables = self.syncs.environment
        self._database = postgres.Server(folder, programs, settings="", variables=variables)
        self._store = self.database.url(self.database.database())
        return super().command()

    def stop(self) -> None:
        super().stop()
        if self._database is not None:
            self._database.remove()
            self._database = None

    def processes(self) -> list[int]:
        """Return the broker, the server's first process, and all that this one has started."""
        first = self.database.pid
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [self.pid, first, *map(int, children)]

    def cpu_seconds(self) -> float:
        """Return the CPU time in seconds, with that of the server's processes that have ended."""
        fields = Path(f"/proc/{self.database.pid}/stat").read_text().rpartition(")")[2].split()
        user, system = int(fields[13]), int(fields[14])
        return super().cpu_seconds() + (user + system) / os.sysconf("SC_CLK_TCK")


def ours_on(store: str) -> OurBroker:
    """Return this project's broker on the store that `--stores` names."""
    match store:
        case "sqlite":
            return OurBroker(name="SQLite")
        case "postgresql":
            return OnPostgres()
        case "memory":
            return OurBroker(name="memory", store=store)
    raise BenchError(f"no such store: {store} (there are sqlite, postgresql and memory)")


def ours_at(program: Path) -> OurBroker:
    """Return another installation of this project's broker, on its own default store."""
    return OurBroker(program.absolute(), name=f"jms-broker of {program}")
