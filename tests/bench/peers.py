"""Other brokers to measure beside ours. They are fetched from their registry, never kept in git."""

import re
import shutil
import socket
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from tests.bench.places import BenchError, cache_folder
from tests.bench.server import OurBroker, Server

ARTEMIS_VERSION: Final = "2.40.0"
FETCH_SECONDS: Final = 600
CREATE_SECONDS: Final = 120
CREATE_OPTIONS: Final = (
    *("--user", "admin", "--password", "admin", "--allow-anonymous", "--host", "127.0.0.1"),
    *("--no-web", "--no-mqtt-acceptor", "--no-stomp-acceptor", "--no-hornetq-acceptor"),
    *("--nio", "--no-autotune", "--silent"),
)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def artemis_home() -> Path:
    """The unpacked distribution; fetched through Maven the first time."""
    folder = cache_folder("artemis")
    home = folder / f"apache-artemis-{ARTEMIS_VERSION}"
    if home.exists():
        return home
    if shutil.which("mvn") is None or shutil.which("java") is None:
        raise BenchError("Artemis needs Maven and Java: apt-get install maven openjdk-17-jdk")
    archive = folder / f"apache-artemis-{ARTEMIS_VERSION}-bin.tar.gz"
    if not archive.exists():
        artifact = f"org.apache.activemq:apache-artemis:{ARTEMIS_VERSION}:tar.gz:bin"
        wanted = (f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
        fetched = subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy", *wanted],
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
        )
        if fetched.returncode != 0:
            raise BenchError(f"Maven could not fetch {artifact}:\n{fetched.stdout[-2000:]}")
    unpacking = folder / "unpacking"
    shutil.rmtree(unpacking, ignore_errors=True)
    with tarfile.open(archive) as files:
        files.extractall(unpacking, filter="data")
    (unpacking / home.name).rename(home)
    unpacking.rmdir()
    return home


def configured(broker_xml: str, port: int) -> str:
    """The generated configuration with one AMQP acceptor and queues as the default kind.

    Everything else stays as Artemis ships it, credit and buffer sizes of the acceptor included.
    """
    one_acceptor = re.sub(r'<acceptor name="artemis">.*?</acceptor>', "", broker_xml)
    moved = one_acceptor.replace("tcp://127.0.0.1:5672?", f"tcp://127.0.0.1:{port}?")
    for_all = '<address-setting match="#">'
    kinds = (
        "<default-address-routing-type>ANYCAST</default-address-routing-type>"
        "<default-queue-routing-type>ANYCAST</default-queue-routing-type>"
    )
    if moved == one_acceptor or for_all not in moved:
        raise BenchError("Artemis generated a configuration that this benchmark does not know")
    return moved.replace(for_all, for_all + kinds)


class Artemis(Server):
    """Apache Artemis, its JVM settings as its own `artemis create` writes them."""

    name = f"artemis-{ARTEMIS_VERSION}"
    ready = re.compile(r"AMQ221007")
    idle_connections = 5_000  # its heap of 2 GiB, as created, is full at 6,700

    def command(self) -> list[str]:
        instance = self.folder / "instance"
        created = subprocess.run(
            [str(artemis_home() / "bin" / "artemis"), "create", str(instance), *CREATE_OPTIONS],
            capture_output=True,
            text=True,
            timeout=CREATE_SECONDS,
        )
        if created.returncode != 0:
            raise BenchError(f"artemis create failed:\n{created.stdout}{created.stderr}")
        self.port = free_port()
        broker_xml = instance / "etc" / "broker.xml"
        broker_xml.write_text(configured(broker_xml.read_text(), self.port))
        return [str(instance / "bin" / "artemis"), "run"]  # the script execs java: one pid

    def manner(self) -> str:
        return "JVM"


def peer_of(name: str) -> Server:
    """The broker that `--peers` names; a path is another installation of ours."""
    if name == "artemis":
        return Artemis()
    if Path(name).is_file():
        return OurBroker(Path(name).absolute())
    raise BenchError(f"no such peer: {name} (there are artemis, and paths of a jms-broker)")
