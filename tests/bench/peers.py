"""Other brokers to measure beside ours. They are fetched from their registry, never kept in git.

`python -m tests.bench.peers NAME` starts one and stops it at the end of its input. A line `restart`
restarts it, with its files and its port; it prints `restarted` once it is ready.
"""

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from tests.bench.certificate import KEYSTORE_PASSWORD, keystore
from tests.bench.ours import InGroup, WithRules, ours_at
from tests.bench.places import BenchError
from tests.bench.server import AMQP, AMQPS, WS, Server
from tests.support.caches import alone, user_cache
from tests.support.ports import free_port

ARTEMIS_VERSION: Final = "2.40.0"
BROKER_J_VERSION: Final = "9.2.1"
ACTIVEMQ_CLASSIC_VERSION: Final = "5.18.3"
"""The newest version of which the registry of Maven has the archive."""
ACTIVEMQ_CLASSIC_OPENS: Final = (
    *(
        "java.base/java.lang",
        "java.base/java.net",
        "java.base/java.security",
        "java.base/java.util",
    ),
    *("java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic"),
)
"""Packages that the script of ActiveMQ Classic opens, as far as a broker of AMQP alone needs."""
MISSING: Final = "missing"
"""Prefix of addresses that a peer must not create."""
FETCH_SECONDS: Final = 600
CREATE_SECONDS: Final = 120
CREATE_OPTIONS: Final = (
    *("--user", "admin", "--password", "admin", "--allow-anonymous", "--host", "127.0.0.1"),
    *("--no-web", "--no-mqtt-acceptor", "--no-stomp-acceptor", "--no-hornetq-acceptor"),
    *("--nio", "--silent"),
)


def unpacked(name: str, artifact: str, home: str) -> Path:
    """Return the folder `home` of a distribution, which Maven fetches the first time.

    It is kept for all checkouts of the user.
    """
    folder = user_cache("jms-broker-bench-peers") / name
    with alone(folder):
        if not (folder / home).exists():
            _unpack(name, artifact, home, folder)
    return folder / home


def _unpack(name: str, artifact: str, home: str, folder: Path) -> None:
    """Fetch a distribution, and put `home` of it into `folder`."""
    if shutil.which("mvn") is None or shutil.which("java") is None:
        raise BenchError(f"{name} needs Maven and Java: apt-get install maven openjdk-17-jdk")
    _, product, version, kind, classifier = artifact.split(":")
    archive = folder / f"{product}-{version}-{classifier}.{kind}"
    if not archive.exists():
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
    (folder / home).parent.mkdir(parents=True, exist_ok=True)
    (unpacking / home).rename(folder / home)
    shutil.rmtree(unpacking)


def artemis_home() -> Path:
    """Return the folder in which Artemis is unpacked."""
    artifact = f"org.apache.activemq:apache-artemis:{ARTEMIS_VERSION}:tar.gz:bin"
    return unpacked("artemis", artifact, f"apache-artemis-{ARTEMIS_VERSION}")


def broker_j_home() -> Path:
    """Return the folder in which Broker-J is unpacked."""
    artifact = f"org.apache.qpid:apache-qpid-broker-j:{BROKER_J_VERSION}:tar.gz:bin"
    return unpacked("broker-j", artifact, f"qpid-broker/{BROKER_J_VERSION}")


def activemq_classic_home() -> Path:
    """Return the folder in which ActiveMQ Classic is unpacked."""
    artifact = f"org.apache.activemq:apache-activemq:{ACTIVEMQ_CLASSIC_VERSION}:tar.gz:bin"
    return unpacked("activemq-classic", artifact, f"apache-activemq-{ACTIVEMQ_CLASSIC_VERSION}")


def configured(broker_xml: str, port: int, *, tls_port: int = 0, store: Path = Path()) -> str:
    """Return the generated configuration with one AMQP acceptor and queues as the default kind.

    With `tls_port`, the same acceptor is there once more, with TLS and the certificate in `store`.
    Everything else stays as Artemis ships it, credit and buffer sizes of the acceptor included.
    """
    one_acceptor = re.sub(r'<acceptor name="artemis">.*?</acceptor>', "", broker_xml)
    moved = one_acceptor.replace("tcp://127.0.0.1:5672?", f"tcp://127.0.0.1:{port}?")
    for_all = '<address-setting match="#">'
    kinds = (
        "<default-address-routing-type>ANYCAST</default-address-routing-type>"
        "<default-queue-routing-type>ANYCAST</default-queue-routing-type>"
    )
    if tls_port:
        tls = f"sslEnabled=true;keyStoreType=PKCS12;keyStorePath={store}"
        tls += f";keyStorePassword={KEYSTORE_PASSWORD}"
        moved = re.sub(
            rf'<acceptor name="amqp">(tcp://127\.0\.0\.1:){port}(\?.*?)</acceptor>',
            rf'\g<0><acceptor name="amqps">\g<1>{tls_port}\g<2>;{tls}</acceptor>',
            moved,
        )
    if moved == one_acceptor or for_all not in moved:
        raise BenchError("Artemis generated a configuration that this benchmark does not know")
    none = (
        f'<address-setting match="{MISSING}.#"><auto-create-queues>false</auto-create-queues>'
        "<auto-create-addresses>false</auto-create-addresses></address-setting>"
    )
    return moved.replace(for_all, none + for_all + kinds)


class Artemis(Server):
    """Apache Artemis, with the JVM settings that its own `artemis create` writes."""

    name = f"artemis-{ARTEMIS_VERSION}"
    ready = re.compile(r"AMQ221007")
    kinds = frozenset({AMQP, AMQPS, WS})
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
        port, tls_port = free_port(), 0
        self.ports = {AMQP: port, WS: port}  # an acceptor of AMQP knows WebSocket by its handshake
        broker_xml = instance / "etc" / "broker.xml"
        text, store = broker_xml.read_text(), self.folder / "server.p12"
        if AMQPS in self.wanted:
            keystore(store)
            self.ports[AMQPS] = tls_port = free_port()
        broker_xml.write_text(configured(text, port, tls_port=tls_port, store=store))
        return [str(instance / "bin" / "artemis"), "run"]  # the script execs java: one pid

    def manner(self) -> str:
        return "JVM"


def broker_j_configuration(port: int) -> dict[str, object]:
    """Return a configuration with one open AMQP 1.0 port, a store on disk, and automatic queues.

    Names that begin with `topic.` become fanout exchanges, but only for a publisher: Broker-J makes
    no exchange for a consumer.
    """
    topics = {
        "pattern": "topic[.].*",
        "nodeType": "Exchange",
        "createdOnPublish": "true",
        "createdOnConsume": "false",
        "attributes": {"type": "fanout"},
    }
    queues = {
        "pattern": f"(?!{MISSING}|topic[.]|Temp).*",
        "nodeType": "Queue",
        "createdOnPublish": "true",
        "createdOnConsume": "true",
        "attributes": {"holdOnPublishEnabled": "true"},
    }
    host = {
        "type": "BDB",
        "storePath": "${qpid.work_dir}/store",
        "nodeAutoCreationPolicies": [topics, queues],
    }
    aliases = ("nameAlias", "defaultAlias", "hostnameAlias")
    return {
        "name": "peer",
        "modelVersion": "9.1",
        "authenticationproviders": [{"name": "anyone", "type": "Anonymous"}],
        "ports": [
            {
                "name": "AMQP",
                "port": str(port),
                "bindingAddress": "127.0.0.1",
                "authenticationProvider": "anyone",
                "protocols": ["AMQP_1_0"],
                "virtualhostaliases": [{"name": alias, "type": alias} for alias in aliases],
            }
        ],
        "virtualhostnodes": [
            {
                "name": "default",
                "type": "JSON",
                "defaultVirtualHostNode": "true",
                "virtualHostInitialConfiguration": json.dumps(host),
            }
        ],
    }


class BrokerJ(Server):
    """Apache Qpid Broker-J, with the JVM settings of its own script."""

    name = f"broker-j-{BROKER_J_VERSION}"
    ready = re.compile(r"BRK-1004")
    has_topics = False  # none for a subscriber that attaches before the publisher

    def command(self) -> list[str]:
        self.ports = {AMQP: free_port()}
        configuration = self.folder / "configuration.json"
        configuration.write_text(json.dumps(broker_j_configuration(self.port)))
        program = broker_j_home() / "bin" / "qpid-server"  # it execs java: one pid
        return ["env", f"QPID_WORK={self.folder}", str(program), "-icp", str(configuration)]

    def manner(self) -> str:
        return "JVM"


def with_amqp_alone(activemq_xml: str, port: int) -> str:
    """Return the shipped configuration with AMQP on `port`, delays, and no web console.

    Everything else stays as ActiveMQ Classic ships it. It has no way to refuse to make a queue.
    """
    amqp = f'<transportConnector name="amqp" uri="amqp://127.0.0.1:{port}"/>'
    text, count = re.subn(
        r"(<transportConnectors>).*(</transportConnectors>)",
        rf"\g<1>{amqp}\g<2>",
        activemq_xml,
        flags=re.DOTALL,
    )
    for found, wanted in (
        ('<import resource="jetty.xml"/>', ""),
        ('dataDirectory="', 'schedulerSupport="true" dataDirectory="'),
    ):
        count += text.count(found)
        text = text.replace(found, wanted)
    if count != 3:
        raise BenchError("ActiveMQ Classic has a configuration that this program does not know")
    return text


class ActiveMQClassic(Server):
    """Apache ActiveMQ Classic, with the JVM settings of its own script, which forks the JVM."""

    name = f"activemq-classic-{ACTIVEMQ_CLASSIC_VERSION}"
    ready = re.compile(r"Connector amqp started")

    def command(self) -> list[str]:
        home, settings = activemq_classic_home(), self.folder / "conf"
        shutil.copytree(home / "conf", settings)
        self.ports = {AMQP: free_port()}
        activemq_xml = settings / "activemq.xml"
        activemq_xml.write_text(with_amqp_alone(activemq_xml.read_text(), self.port))
        places = {"home": home, "base": home, "conf": settings, "data": self.folder / "data"}
        return [
            *("java", "-Xms64M", "-Xmx1G", "-Djava.awt.headless=true"),
            *(f"--add-opens={package}=ALL-UNNAMED" for package in ACTIVEMQ_CLASSIC_OPENS),
            *(f"-Dactivemq.{name}={place}" for name, place in places.items()),
            f"-Djava.security.auth.login.config={settings / 'login.config'}",
            *("-jar", str(home / "bin" / "activemq.jar"), "start", f"xbean:file:{activemq_xml}"),
        ]

    def manner(self) -> str:
        return "JVM"


def peer_of(name: str) -> Server:
    """Return the broker that `--peers` names; a path is another installation of ours."""
    if name == "artemis":
        return Artemis()
    if name == "broker-j":
        return BrokerJ()
    if name == "activemq-classic":
        return ActiveMQClassic()
    if name == "rules":
        return WithRules()
    if name == "group":
        return InGroup()
    if Path(name).is_file():
        return ours_at(Path(name))
    known = "artemis, broker-j, activemq-classic, rules, group, paths"
    raise BenchError(f"no such peer: {name} (there are {known})")


if __name__ == "__main__":
    with peer_of(*sys.argv[1:2]) as running:
        print(f"amqp://{running.peer}", flush=True)
        for line in sys.stdin:
            if line.strip() == "restart":
                running.restart()
                print("restarted", flush=True)
