"""The file that `jms-broker doctor --bundle` writes, for those who are asked for help.

It has findings, versions, settings and the end of the log, and no secrets: known ones are replaced
wherever they are, and so is the password of any URL.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sqlite3
import ssl
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

from broker import __version__
from broker.compiled import build_kind
from broker.doctor.file_checks import secrets_of
from broker.doctor.finding import DoctorFinding
from broker.settings import Settings
from broker.settings_errors import ENVIRONMENT_PREFIX

MASKED: Final = "***"

LOG_BYTES: Final = 256 * 1024
"""Bytes at the end of the log that are copied."""

FILE_MODE: Final = 0o600

SECRET_BYTES_MAX: Final = 64 * 1024
"""Maximum bytes of a file with one secret; larger ones are no passwords."""

_PASSWORD_OF_URL: Final = re.compile(r"(://[^/\s:@]*):[^/\s]*@")
_ASSIGNED: Final = re.compile(
    r"((?:password|passwd|secret|token|authorization)[\"']?\s*[=:]\s*)(?:Bearer\s+|Basic\s+)?"
    r"(\"[^\"]*\"|'[^']*'|\S+)",
    re.IGNORECASE,
)
_VERIFIER: Final = re.compile(r"(?:\$argon2|SCRAM-SHA-\d+\$)\S+")
_JWT: Final = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")


class Masking:
    """Replaces secrets in texts: those that are known, and what looks like one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        # longer ones first: a secret may be the beginning of another one
        self._known: Final = sorted({each for each in secrets if each}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """Return `text` without secrets."""
        for secret in self._known:
            text = text.replace(secret, MASKED)
        text = _PASSWORD_OF_URL.sub(rf"\1:{MASKED}@", text)
        text = _ASSIGNED.sub(rf"\1{MASKED}", text)
        return _JWT.sub(MASKED, _VERIFIER.sub(MASKED, text))

    def record(self, record: Mapping[str, object]) -> dict[str, object]:
        """Return a record without secrets in its values."""
        return {key: self.value(each) for key, each in record.items()}

    def value(self, value: object) -> object:
        """Return a value of JSON without secrets."""
        if isinstance(value, Mapping):
            return self.record({str(key): each for key, each in value.items()})
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return self.text(value) if isinstance(value, str) else value


def masking_of(settings: Settings | None, *others: str | None) -> Masking:
    """Return the masking of the secrets of the settings, of the environment, and of `others`.

    Secrets of the environment are the values of the broker's variables with passwords, and
    PGPASSWORD.
    """
    found = [each for each in others if each is not None]
    found += [value for name, value in os.environ.items() if _is_secret(name)]
    if settings is not None:
        if settings.password is not None:
            found.append(settings.password.get_secret_value())
        found += _contents(_password_files(settings))
    return Masking(found)


def _is_secret(variable: str) -> bool:
    name = variable.upper()
    own = name.startswith(ENVIRONMENT_PREFIX) and name.endswith("PASSWORD")
    return own or name == "PGPASSWORD"


def _password_files(settings: Settings) -> Iterator[Path]:
    """Yield the files whose whole content is a password."""
    files = [settings.password_file, settings.tls and settings.tls.key_password_file]
    files += [each.tls.key_password_file for each in settings.listener if each.tls is not None]
    known = set(secrets_of(settings))
    yield from (path for path in files if path is not None and path in known)


def _contents(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        try:
            if path.stat().st_size <= SECRET_BYTES_MAX:
                yield path.read_text(errors="replace").rstrip("\r\n")
        except OSError:
            continue  # a file that cannot be read is nowhere in the bundle either


def versions() -> dict[str, object]:
    """Return the versions of the broker, of Python, of libraries, and of the system."""
    installed = {each.name: each.version for each in distributions()}
    return {
        "jms-broker": __version__,
        "build": build_kind(),
        "python": sys.version,
        "system": platform.platform(),
        "sqlite": sqlite3.sqlite_version,
        "openssl": ssl.OPENSSL_VERSION,
        "packages": dict(sorted(installed.items())),
    }


@dataclass(frozen=True, kw_only=True)
class BundleContent:
    """The content of a bundle. `log` is the file of the broker's log, if known.

    `store` is what a running broker tells of its store.
    """

    findings: Sequence[DoctorFinding]
    settings: Settings | None
    log: Path | None = None
    store: Mapping[str, object] | None = None

    def texts(self, masking: Masking) -> dict[str, str]:
        """Return each part by its name, without secrets. OSError if the log cannot be read."""
        parts: dict[str, object] = {
            "findings.json": [each.record() for each in self.findings],
            "versions.json": versions(),
        }
        if self.settings is not None:
            parts["settings.json"] = self.settings.model_dump(mode="json")
        if self.store is not None:
            parts["store.json"] = dict(self.store)
        texts = {name: _json(masking.value(part)) for name, part in parts.items()}
        if self.log is not None:
            texts["broker.log"] = masking.text(_end_of(self.log))
        return texts


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def write_bundle(file: Path, content: BundleContent, masking: Masking) -> None:
    """Write the bundle to a new file, for the user alone. OSError if that is impossible."""
    texts = content.texts(masking)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    with os.fdopen(descriptor, "wb") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as to:
        for name, text in texts.items():
            to.writestr(name, text)


def _end_of(log: Path) -> str:
    """Return the last whole lines of the log, at most LOG_BYTES. OSError if it is unreadable."""
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LOG_BYTES))
        tail = file.read()
    if size > LOG_BYTES:
        tail = tail.partition(b"\n")[2]
    return tail.decode(errors="replace")
