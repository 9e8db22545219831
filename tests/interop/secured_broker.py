"""A broker on a hostile network: TLS, client certificates, SCRAM, users and a file of rules."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)

from broker.security.users import Users
from tests.interop.broker_process import PASSWORD, USER, BrokerProcess
from tests.support.certificates import SERVER_NAME, Authority, Issued
from tests.support.quick_logins import USERS_FILE, make_quick

SHOP: Final = "shop"
"""A user with a password and a certificate, who may use every queue and topic."""

SHOP_PASSWORD: Final = "tulip"
SHOP_NAME: Final = "shop@example.org"
"""The name in the certificate of SHOP."""

READER: Final = "reader"
"""A user who may only receive, and only from queues whose names begin with `read`."""

READER_PASSWORD: Final = "daisy"

SCRAM_512: Final = "scram512"
"""A user who may log in by SCRAM-SHA-512 only."""

SUITE: Final = "suite"
"""A user of the role application, who may log in by SCRAM-SHA-512 only: of the JMS suite."""

SUITE_PASSWORD: Final = "poppy"

APPLICATIONS: Final = {
    SCRAM_512: "rose",
    SUITE: SUITE_PASSWORD,
    "hasty": "violet",
    "mistyped": "clover",
    "neighbour": "lily",
}
"""Further users of the role application, with their passwords: of one test each."""

QUICK: Final = {USER: PASSWORD, SHOP: SHOP_PASSWORD, READER: READER_PASSWORD} | {
    name: password for name, password in APPLICATIONS.items() if name != SCRAM_512
}
"""Users whose logins by SCRAM cost little; those of SCRAM_512 take the usual iterations."""

STORE_PASSWORD: Final = "changeit"
"""The password of the stores for Java."""

RULES: Final = """\
[[rule]]
id = "reading-connect"
who = ["role:reading"]
can = ["connect"]
on = ["connection:*"]

[[rule]]
id = "reading-receive"
who = ["role:reading"]
can = ["receive", "browse"]
on = ["queue:read.#"]

[[rule]]
id = "reading-durable"
who = ["role:reading"]
can = ["subscribe", "create"]
on = ["topic:#"]

[[rule]]
id = "passing-on"
who = ["user:shop"]
can = ["impersonate"]
on = ["user-id:*"]

[[rule]]
id = "dynamic"
who = ["user:shop"]
can = ["receive"]
on = ["temporary:dynamic"]

[[rule]]
id = "closed"
effect = "deny"
who = ["user:shop"]
can = ["*"]
on = ["queue:closed.#"]
"""

LISTENER: Final = """
[[listener]]
name = "{name}"
kind = "amqps"
port = 0

[listener.tls]
certificate = "server.pem"
key = "server.key"
client_certificates = "{client_certificates}"
client_ca = "ca.pem"
user_from = "san:email"
"""


class SecuredBroker(BrokerProcess):
    """The broker; its folder has the certificates.

    `ca.pem` is the authority, `shop` the certificate of SHOP, `stranger` one of the authority that
    no user has, `foreign` one with SHOP's name of another authority. Each is a pair of `.pem` and
    `.key`; `shop.p12` and `trusted.p12` are for Java.
    """

    def __init__(self, folder: Path, *, settings: str = "") -> None:
        """Start it in `folder`, which may keep its users and certificates from an earlier start."""
        self.folder: Final = folder
        if not (folder / "ca.pem").exists():
            _write_certificates(folder)
            _write_users(folder)
        listeners = "".join(
            LISTENER.format(name=name, client_certificates=asked)
            for name, asked in (("asking", "ask"), ("demanding", "require"))
        )
        files = f'users_file = "{USERS_FILE}"\nacl_file = "acl.toml"\n'
        (folder / "acl.toml").write_text(RULES)
        super().__init__(folder, settings=f"{files}{settings}{listeners}")

    def tls_url(self, login: str = "", *, listener: str = "asking") -> str:
        """Return the URL of a listener with TLS by the name in its certificate."""
        port = self.listeners[listener].rpartition(":")[2]
        user = f"{login}@" if login else ""
        return f"amqps://{user}{SERVER_NAME}:{port}"

    def file(self, name: str) -> str:
        """Return the path of a file with certificates."""
        return str(self.folder / name)


def _write_certificates(folder: Path) -> None:
    authority, other = Authority(), Authority()
    authority.write(folder)
    other.write(folder, "other")
    authority.issue(SERVER_NAME, "127.0.0.1").write(folder, "server")
    shop = authority.issue(SHOP_NAME)
    shop.write(folder, "shop")
    authority.issue("stranger@example.org").write(folder, "stranger")
    other.issue(SHOP_NAME).write(folder, "foreign")
    _write_stores(folder, authority, shop)


def _write_stores(folder: Path, authority: Authority, shown: Issued) -> None:
    """Write what Java reads: `trusted.p12` with the authority, `shop.p12` with a certificate."""
    encryption = BestAvailableEncryption(STORE_PASSWORD.encode())
    trusted = PKCS12Certificate(x509.load_pem_x509_certificate(authority.pem), b"ca")
    (folder / "trusted.p12").write_bytes(serialize_java_truststore([trusted], encryption))
    key = load_pem_private_key(shown.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    (folder / "shop.p12").write_bytes(
        serialize_key_and_certificates(b"shop", key, shown.parsed, None, encryption)
    )


def _write_users(folder: Path) -> None:
    users = Users(folder / USERS_FILE)
    users.add(USER, PASSWORD, roles=["admin"])
    users.add(SHOP, SHOP_PASSWORD, roles=["application"], certificates=[SHOP_NAME])
    users.add(READER, READER_PASSWORD, roles=["reading"])
    for name, password in APPLICATIONS.items():
        users.add(name, password, roles=["application"])
    text = users.file.read_text()
    for name in (SCRAM_512, SUITE):
        alone = f'name = "{name}"\n'
        assert alone in text
        text = text.replace(alone, f'{alone}mechanisms = ["SCRAM-SHA-512"]\n')
    users.file.write_text(text)
    make_quick(users.file, QUICK)
