"""A broker with TLS for the pipeline, and a user who has nothing but the role `pipeline`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from broker.security.users import Users
from tests.support.certificates import Authority
from tests.support.ports import free_port

USER: Final = "pipe"
PASSWORD: Final = "tulip-canary"
KEY_PASSWORD: Final = "daisy-canary"


class PipelineSite:
    """The files of the broker and of the user, in `folder`, and the port of the TLS listener.

    The user has a certificate, a key with a password, and files with that password and a token.
    """

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.authority: Final = Authority()
        self.port: Final = free_port()
        self.ca: Final = self.authority.write(folder)
        self.server: Final = self.authority.issue("localhost").write(folder, "server")
        issued = self.authority.issue("pipe.example")
        self.certificate, self.key = issued.write(folder, "pipe")
        self.locked_key: Final = folder / "locked.key"
        self.locked_key.write_bytes(issued.key_with(KEY_PASSWORD))
        self.key_password: Final = folder / "key-password"
        self.key_password.write_text(f"{KEY_PASSWORD}\n")
        self.users: Final = Users(folder / "users")
        self.users.add(USER, PASSWORD, roles=["pipeline"], certificates=["pipe.example"])

    @property
    def url(self) -> str:
        """The URL of the TLS listener."""
        return f"amqps://localhost:{self.port}"

    def tables(self) -> dict[str, dict[str, object]]:
        """Return the tables of the broker's settings."""
        certificate, key = self.server
        return {
            "listener": {"name": "secure", "kind": "amqps", "port": self.port},
            "http": {"port": 0, "tls": True},
            "tls": {
                "certificate": str(certificate),
                "key": str(key),
                "client_certificates": "ask",
                "client_ca": str(self.ca),
                "user_from": "san:dns",
            },
        }

    def settings(self) -> dict[str, object]:
        """Return the settings of a broker in this process."""
        tables = self.tables()
        return {**tables, "listener": [tables["listener"]], "users_file": self.users.file}

    def toml(self) -> str:
        """Return the settings of a broker in another process."""
        lines = [f"users_file = {json.dumps(str(self.users.file))}"]
        for name, table in self.tables().items():
            lines.append(f"[[{name}]]" if name == "listener" else f"[{name}]")
            lines.append(as_toml(table))
        return "\n".join(lines) + "\n"

    def by_password(self) -> dict[str, str]:
        return {"url": self.url, "tls.caFile": str(self.ca), "username": USER, "password": PASSWORD}

    def by_certificate(self) -> dict[str, str]:
        """Return options for a login with the key that has a password."""
        return {
            "url": self.url,
            "tls.caFile": str(self.ca),
            "tls.certFile": str(self.certificate),
            "tls.keyFile": str(self.locked_key),
            "tls.keyPasswordFile": str(self.key_password),
        }


def as_https(http_url: str) -> str:
    """Return the broker's HTTPS URL by the name that its certificate has."""
    return http_url.replace("127.0.0.1", "localhost")


def as_toml(table: Mapping[str, object]) -> str:
    """Return the lines of a table whose values are texts, numbers, truths, or lists of them."""
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items())


def in_file(options: Mapping[str, str]) -> dict[str, str]:
    """Return options of the source as a file of jobs of `jms-broker pipeline` names them."""
    named = {
        "url": "url",
        "username": "user",
        "tls.caFile": "ca",
        "tls.certFile": "cert",
        "tls.keyFile": "key",
        "tls.keyPasswordFile": "key-password-file",
        "tokenFile": "token-file",
        "managementUrl": "management-url",
    }
    return {named[name]: value for name, value in options.items()}


def flags(options: Mapping[str, str]) -> list[str]:
    """Return options of the source as those of `jms-broker pipeline`."""
    return [word for name, value in in_file(options).items() for word in (f"--{name}", value)]
