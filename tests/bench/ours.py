"""This project's broker, on each of its stores."""

import os
import re
import tempfile
from pathlib import Path
from typing import Final

from broker.security.passwords import hash_of
from tests.bench.certificate import certificate
from tests.bench.disk import disk_folder
from tests.bench.places import ROOT, BenchError
from tests.bench.server import AMQP, AMQPS, LOGINS, WS, Server
from tests.support import postgres

RULES: Final = 100
USER: Final = "ada"
PASSWORD: Final = "that no client of the benchmark knows"

INSTALLED: Final = ROOT / ".venv" / "bin" / "jms-broker"


def manner_of(pid: int) -> str:
    """Return "compiled" if the broker's process has the engine's shared objects mapped."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return "compiled" if re.search(r"/broker/amqp/\w+\.cpython\S+\.so", maps) else "interpreted"


class OurBroker(Server):
    """This project's broker as `make run` installs it, or as it is installed elsewhere.

    Without a `store` it uses the default of `serve`, SQLite.
    """

    ready = re.compile(
        r"ready amqp://127\.0\.0\.1:(?P<amqp>\d+) "
        r"(?:.* logins=amqp://127\.0\.0\.1:(?P<logins>\d+))?"
        r"(?:.* ws=ws://127\.0\.0\.1:(?P<ws>\d+))?"
        r"(?:.* amqps=amqps://127\.0\.0\.1:(?P<amqps>\d+))?.*\n"
    )
    is_ours = True
    kinds = frozenset({AMQP, AMQPS, LOGINS, WS})

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
        text = self.settings() + self._listeners()
        if text:
            path = self.folder / "broker.toml"
            path.write_text(text)
            command += ["--config", str(path)]
        return command + (["--store", self._store] if self._store else [])

    def variables(self) -> dict[str, str]:
        """Let more than a hundred clients of one address log in at once, as those of `topics` do.

        Older builds have no such limit, and refuse a variable that they do not know.
        """
        limit = "lib/python*/site-packages/broker/net/connection_gate.py"
        if not any(self._program.parent.parent.glob(limit)):
            return {}
        return {"JMS_BROKER_LIMIT_LOOPBACK": "false"}

    def settings(self) -> str:
        """Return the settings of the broker in TOML, which are those of `serve` by default."""
        return ""

    def _listeners(self) -> str:
        """Return the settings of the listeners besides the first, each named by its kind."""
        text = ""
        if LOGINS in self.wanted:
            path = self.folder / "users.toml"
            path.write_text(f'[[user]]\nname = "{USER}"\npassword = "{hash_of(PASSWORD)}"\n')
            path.chmod(0o600)
            text += f'allow_anonymous = true\nusers_file = "{path}"\n'
            text += _listener(LOGINS, AMQP) + 'mechanisms = ["PLAIN"]\n'
        if WS in self.wanted:
            text += _listener(WS, WS)
        if AMQPS in self.wanted:
            pem, key = certificate().write(self.folder, "server")
            text += _listener(AMQPS, AMQPS)
            text += f'[tls]\ncertificate = "{pem}"\nkey = "{key}"\n'
        return text

    def manner(self) -> str:
        return manner_of(self.pid)


def _listener(name: str, kind: str) -> str:
    return f'[[listener]]\nname = "{name}"\nkind = "{kind}"\nbind = "127.0.0.1"\nport = 0\n'


class WithRules(OurBroker):
    """This project's broker with a rules file of RULES rules, to compare with one that has none.

    The clients have no login, so on this machine they have the role `admin`, whose rule allows what
    they do once none of the others has matched.
    """

    def __init__(self, program: Path = INSTALLED) -> None:
        super().__init__(program, name=f"{RULES} rules")

    def settings(self) -> str:
        rules = [
            f'[[rule]]\nid = "denied-{number}"\neffect = "deny"\nwho = ["anonymous"]\n'
            f'can = ["*"]\non = ["queue:secret-{number}.#", "topic:*.secret-{number}"]\n'
            for number in range(RULES // 2)
        ]
        rules += [
            f'[[rule]]\nid = "allowed-{number}"\nwho = ["anonymous"]\ncan = ["send", "receive"]\n'
            f'on = ["queue:shop-{number}.#", "topic:news-{number}.#"]\n'
            for number in range(RULES - RULES // 2)
        ]
        path = self.folder / "acl.toml"
        path.write_text("\n".join(rules))
        return f'acl_file = "{path}"\n'


class OnPostgres(OurBroker):
    """This project's broker on a PostgreSQL server of its own, which counts as part of it.

    The server is as `initdb` makes it, except for where it listens.
    """

    def __init__(self, *, name: str = "PostgreSQL") -> None:
        super().__init__(name=name)
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


class InGroup(OnPostgres):
    """This project's broker as the leader of a group, to compare with one that is in none."""

    def __init__(self) -> None:
        super().__init__(name="a group")

    def settings(self) -> str:
        return '[ha]\nenabled = true\nname = "one"\n'


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
