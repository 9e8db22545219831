"""Java for the suite: its class path, and its classes, which are compiled once for each user.

Maven fetches Qpid JMS in the version of `java/pom.xml`, unless the user gives a class path.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from ..asked import CannotRun
from .catalogue import FOLDER, SOURCES

BUILD_S: Final = 600.0
"""Maximum seconds to fetch the client, and to compile the suite."""

RELEASE: Final = "17"
"""The version of Java for which the suite is compiled, the oldest that runs it."""

PRIVATE: Final = 0o700
"""The mode of folders for what is built."""

OUTPUT_CHARACTERS: Final = 2_000
"""Maximum characters of a failed command's output that are shown: the last ones."""

JVM: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""The JVM runs for seconds only: thorough compilation costs more than it gains."""


def java_command(class_path: str | None) -> list[str]:
    """Return the command that runs the suite, without the names of tests; build it if need be.

    `class_path` is that of the client, None to let Maven fetch it. Raise CannotRun without Java or
    Maven, and if the suite cannot be built, or is another user's.
    """
    java, javac = _tool("java"), _tool("javac")
    try:
        place = _place(class_path)
        client = class_path or _fetched(place)
        classes = place / "classes"
        if not classes.exists():
            _compile(javac, client, classes)
        _check_owner(classes)
    except OSError as error:
        raise CannotRun(f"--jms: the suite cannot be built: {error}") from None
    logging = "-Dslf4j.provider=jmsapi.FrameLog"
    both = f"{classes}{os.pathsep}{client}"
    return [java, *JVM, logging, "-cp", both, "jmsapi.Main"]


def _compile(javac: str, client: str, classes: Path) -> None:
    """Compile the suite into the folder `classes`, which appears when all is done."""
    with tempfile.TemporaryDirectory(dir=classes.parent) as folder:
        made = Path(folder) / "classes"
        options = ["-encoding", "UTF-8", "--release", RELEASE, "-cp", client]
        sources = [str(file) for file in sorted(SOURCES.glob("*.java"))]
        _run([javac, *options, "-d", str(made), *sources], classes.parent)
        try:
            made.rename(classes)
        except OSError:
            # another process may have compiled the same meanwhile
            if not classes.exists():
                raise


def _place(class_path: str | None) -> Path:
    """Return the folder of what is built; another one if a source or the class path changes.

    It is the user's alone: a JVM runs what is in it. Raise CannotRun if it is another user's.
    """
    digest = hashlib.sha256((class_path or "").encode())
    for file in (FOLDER / "pom.xml", *sorted(SOURCES.glob("*.java"))):
        digest.update(file.read_bytes())
    caches = _caches()
    caches.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    place = caches / "amqp-conformance" / f"jms-api-{digest.hexdigest()[:12]}"
    for folder in (place.parent, place):
        folder.mkdir(mode=PRIVATE, exist_ok=True)
        _check_owner(folder)
    return place


def _caches() -> Path:
    """Return the user's folder of caches (XDG Base Directory). Raise CannotRun without a home."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # a relative path is to be ignored, as the specification says
    if given.is_absolute():
        return given
    try:
        return Path.home() / ".cache"
    except RuntimeError as error:
        raise CannotRun(f"--jms: no folder to build in, set XDG_CACHE_HOME: {error}") from None


def _check_owner(file: Path) -> None:
    """Raise CannotRun if `file` is another user's, who could change what the JVM runs."""
    if sys.platform != "win32" and file.stat().st_uid != os.geteuid():
        raise CannotRun(f"--jms: {file} belongs to another user: remove it")


def _fetched(place: Path) -> str:
    """Return the class path of the client; Maven fetches what is missing of it."""
    named = place / "class-path.txt"
    if named.exists():
        _check_owner(named)
        known = named.read_text(encoding="utf-8").strip()
        if all(Path(file).exists() for file in known.split(os.pathsep)):
            return known
    maven = _tool("mvn", " (or --jms-class-path, the jars of Qpid JMS 2.x)")
    with tempfile.TemporaryDirectory(dir=place) as folder:
        written = Path(folder) / named.name
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={written}"]
        _run([maven, "--quiet", "--batch-mode", "-f", str(FOLDER / "pom.xml"), *goal], place)
        written.replace(named)
    return named.read_text(encoding="utf-8").strip()


def _tool(name: str, otherwise: str = "") -> str:
    """Return the path of a program. Raise CannotRun without it."""
    found = shutil.which(name)
    if found is None:
        needed = f"Java {RELEASE} or later (a JDK) and Maven{otherwise}"
        raise CannotRun(f"--jms needs {needed}: there is no program {name} on the PATH")
    return found


def _run(command: list[str], folder: Path) -> None:
    """Run a command. Raise CannotRun with the end of its output if it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=BUILD_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotRun(f"--jms: {command[0]} did not end within {BUILD_S:g} s") from None
    if done.returncode != 0:
        printed = done.stdout[-OUTPUT_CHARACTERS:].strip()
        raise CannotRun(f"--jms: {command[0]} ended with status {done.returncode}:\n{printed}")
