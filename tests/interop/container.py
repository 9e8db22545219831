"""The image that the Dockerfile describes, built and run by root, without a daemon.

The base is made by mmdebstrap. Base, image and the layers of its steps are kept in CACHE; the image
is made anew when its sources have changed, from the first step on that they concern. Every step of
the Dockerfile runs, but the broker's modules are compiled to C for a few only, unless
IMAGE_MODULES=all. A container is the image's root, mounted read-only in a mount namespace of its
own, with a chroot into it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import tomlkit

from tests.interop.broker_process import ROOT
from tests.interop.conftest import not_available
from tests.support.caches import user_cache

RELEASE: Final = os.environ.get("IMAGE_RELEASE", "bookworm")
"""The Debian release to build on: bookworm has Python 3.11, trixie 3.13."""

CACHE: Final = user_cache("jms-broker-tests-image")
LOG: Final = CACHE / "build.log"
BASE: Final = f"localhost/jms-broker-base:{RELEASE}"
TOOLS: Final = ("buildah", "mmdebstrap", "unshare", "chroot")
PACKAGES: Final = "python3,python3-venv,ca-certificates"

ALONE: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Command for mmdebstrap, whose mounts lead to this machine's files: they are seen by it alone, and
it leaves no process behind if it is killed, so the folder can be removed."""

IMAGES_MAX: Final = 60
"""Layers are kept for later builds up to this number of images and layers; then all are removed."""

BUILD_SECONDS: Final = 1200
RUN_SECONDS: Final = 60

PIP_SETTINGS: Final = {"index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "cert"}
"""Settings of this machine's pip that the image's pip needs as well."""

OVERLAY: Final = "overlay"

CERTIFICATES: Final = Path("/etc/ssl/certs")

COMPILER: Final = """\
#!/bin/sh
exec "/usr/bin/${0##*/}" "$@" -O0 -fno-lto
"""
"""Script that hides a compiler: the tests of the image need no fast code, which takes minutes."""

ALL_MODULES: Final = os.environ.get("IMAGE_MODULES") == "all"
"""Whether the image compiles all modules that pyproject.toml names, as a user's image does."""

FEW_MODULES: Final = ("/broker/amqp/connection.py", "/broker/message.py")
"""The modules that are compiled otherwise: two, so that they are linked to one library.

`make build` has compiled all of them on this machine already, which takes minutes of CPU time.
"""

COMPILERS: Final = ("gcc", "x86_64-linux-gnu-gcc", "aarch64-linux-gnu-gcc")
"""Names by which Python may start it."""

ENTER: Final = """\
root=$1 data=$2 secrets=$3 user=$4
shift 4
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$data" "$root/var/lib/jms-broker"
mount --bind "$secrets" "$root/mnt"
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user" "$root" /usr/bin/env -i "$@"
"""
"""Script for what a container runtime does: `--read-only`, one volume, one secret, one process."""


class Image:
    """A built image: its configuration, and its root as a folder."""

    def __init__(self, name: str, root: Path, config: dict[str, object]) -> None:
        self.name: Final = name
        self.root: Final = root
        self.config: Final = config

    @property
    def packages(self) -> Path:
        """Return the folder in which the image's Python finds the broker."""
        return next(self.root.glob("opt/jms-broker/lib/python3*/site-packages"))

    def texts(self, key: str) -> list[str]:
        """Return a setting of the configuration that is a list."""
        value = self.config[key]
        assert isinstance(value, list)
        return [str(each) for each in value]

    def run(self, data: Path, *arguments: str, **variables: str) -> list[str]:
        """Return a command like `docker run --read-only -v DATA:…/jms-broker IMAGE ARGUMENTS`.

        The folder `secrets` beside DATA is at /mnt. Without arguments, the image's own are used.
        """
        command = [*self.texts("Entrypoint"), *(arguments or self.texts("Cmd"))]
        return self.enter(data, *command, **variables)

    def enter(self, data: Path, *command: str, **variables: str) -> list[str]:
        """Return a command like `docker exec`."""
        secrets = data.with_name("secrets")
        secrets.mkdir(exist_ok=True)
        places = [str(self.root), str(data), str(secrets), str(self.config["User"])]
        given = [*self.texts("Env"), *(f"{name}={value}" for name, value in variables.items())]
        folder = f"--chdir={self.config['WorkingDir']}"
        return ["unshare", "--mount", "sh", "-ec", ENTER, "sh", *places, folder, *given, *command]

    def volume(self, folder: Path) -> Path:
        """Make a volume in `folder`; like a runtime's, it has the owner of its mount point."""
        data = folder / "data"
        data.mkdir()
        place = self.root / "var/lib/jms-broker"
        os.chown(data, place.stat().st_uid, place.stat().st_gid)
        return data


def require_tools() -> None:
    """Skip, and under CI=true fail, if no image can be built here."""
    if os.geteuid() != 0:
        not_available("not root: the image is not built")
    for tool in TOOLS:
        if shutil.which(tool) is None:
            not_available(f"{tool} is not installed: the image is not built")


@contextmanager
def built(tell: Callable[[str], None]) -> Iterator[Image]:
    """Yield the image of the checkout as it is now. `tell` is given progress and sizes as text.

    Only one build runs at a time; another waits. Remains of an earlier one that was killed are
    removed.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with LOG.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in CACHE.glob("tmp*"):
            shutil.rmtree(left)
        _buildah("rm", "--all")
        name = _built(tell)
        inspected = json.loads(_buildah("inspect", "--type", "image", name))
        container = _buildah("from", name).strip()
        root = Path(_buildah("mount", container).strip())
        yield Image(name, root, inspected["Docker"]["config"])
        _buildah("rm", "--all")


def _built(tell: Callable[[str], None]) -> str:
    """Make the base and the image unless they are there already; return the image's name."""
    known = _names()
    if BASE not in known:
        tell(f"making a base of Debian {RELEASE}")
        _make_base()
    name = f"localhost/jms-broker:{RELEASE}-{digest(ROOT)}{'-all' if ALL_MODULES else ''}"
    if name in known:
        tell("nothing of the image has changed since it was built")
    else:
        tell("building the image")
        _forget(known)
        _build(name)
    sizes = _names()
    tell(f"the image has {sizes[name]}, of which its base {sizes[BASE]}")
    return name


def _make_base() -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        root = Path(folder) / "root"
        options = ["--quiet", "--mode=root", "--variant=minbase", f"--include={PACKAGES}"]
        _log([*ALONE, "mmdebstrap", *options, RELEASE, str(root)])
        container = _buildah("from", "scratch").strip()
        _buildah("add", "--quiet", container, str(root), "/")
        _buildah("commit", "--quiet", "--rm", container, BASE)


def _build(name: str) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        settings = Path(folder) / "pip.conf"
        settings.write_text(_pip_settings())
        compilers = Path(folder) / "compilers"
        compilers.mkdir()
        for compiler in COMPILERS:
            (compilers / compiler).write_text(COMPILER)
            (compilers / compiler).chmod(0o755)
        hidden = f"--volume={compilers}:/usr/local/bin:ro"
        certificates = f"--volume={CERTIFICATES}:{CERTIFICATES}:ro"
        options = ["--isolation=chroot", "--format=docker", f"--build-arg=BASE={BASE}"]
        # without overlay each layer would be a copy of the whole root
        options.append(f"--layers={str(_driver() == OVERLAY).lower()}")
        secret = f"--secret=id=pip,src={settings}"
        context = Path(folder) / "context"
        copy_context(context, all_modules=ALL_MODULES)
        _buildah("bud", *options, certificates, hidden, secret, f"--tag={name}", str(context))


def copy_context(context: Path, *, all_modules: bool) -> None:
    """Copy the files of the checkout that an image is made of to `context`, a new folder.

    Unless `all_modules`, its pyproject.toml names FEW_MODULES as those to compile.
    """
    for file in context_files(ROOT):
        copy = context / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    if not all_modules:
        project = context / "pyproject.toml"
        document = tomlkit.parse(project.read_text())
        compiled_by(document)["include"] = list(FEW_MODULES)
        project.write_text(tomlkit.dumps(document))


def compiled_by(project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of mypyc in `project`, the content of a pyproject.toml."""
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    settings: dict[str, Any] = wheel["hooks"]["mypyc"]
    return settings


def _pip_settings() -> str:
    """Return this machine's settings of pip, from all their sources, as the text of a file."""
    lines = subprocess.check_output(
        [sys.executable, "-m", "pip", "config", "list"], text=True
    ).splitlines()
    chosen: dict[str, str] = {}
    for line in lines:  # such as global.cert='…'; :env:.cert='…' is last and overrides it
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key in PIP_SETTINGS:
            chosen[key] = value.strip("'")
    return "\n".join(["[global]", *(f"{key} = {value}" for key, value in chosen.items()), ""])


def digest(folder: Path) -> str:
    """Return a digest of everything in `folder`, a checkout, that an image is made of."""
    digest = hashlib.sha256()
    for file in context_files(folder):
        digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def context_files(folder: Path) -> list[Path]:
    """Return the files of `folder`, a checkout, that an image is made of.

    This is what .dockerignore lets into the build, that file itself, and the Dockerfile.
    """
    lines = (folder / ".dockerignore").read_text().splitlines()
    patterns = [line[1:] for line in lines if line.startswith("!")]
    files = _files(folder, ["Dockerfile", ".dockerignore", *patterns])
    return sorted(file for file in files if file.suffix not in {".pyc", ".so"})


def _files(folder: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """Yield the files in `folder` that match, and all files below matching folders."""
    for path in (path for pattern in patterns for path in folder.glob(pattern)):
        yield from (file for file in [path, *path.rglob("*")] if file.is_file())


def _names() -> dict[str, str]:
    """Return the size of every image by its name."""
    images = json.loads(_buildah("images", "--json") or "[]") or []
    return {name: image["size"] for image in images for name in image.get("names") or []}


def _forget(names: Iterable[str]) -> None:
    """Remove the images that were built from earlier sources, and all layers if there are many."""
    for name in names:
        if name.startswith(f"localhost/jms-broker:{RELEASE}-"):
            _buildah("rmi", "--force", name)
    if len(json.loads(_buildah("images", "--all", "--json") or "[]") or []) > IMAGES_MAX:
        _buildah("rmi", "--all", "--force")
        _make_base()


def _buildah(*arguments: str) -> str:
    return _log(_in_storage(_driver(), *arguments))


def _in_storage(driver: str, *arguments: str) -> list[str]:
    """Return a command of buildah; each driver has a storage of its own."""
    folder = CACHE / driver
    storage = [f"--root={folder / 'storage'}", f"--runroot={folder / 'run'}"]
    return ["buildah", f"--storage-driver={driver}", *storage, *arguments]


@cache
def _driver() -> str:
    """Return the driver of buildah's storage: overlay where the file system of CACHE allows it."""
    tried = subprocess.run(_in_storage(OVERLAY, "images"), capture_output=True, check=False)
    return OVERLAY if tried.returncode == 0 else "vfs"


def _log(command: list[str]) -> str:
    """Run `command` and return its output.

    All output is also written to LOG; if the command fails, the end of the output is in the
    failure.
    """
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    with LOG.open("a") as log:
        log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
    if done.returncode != 0:
        tail = "\n".join(f"{done.stdout}{done.stderr}".splitlines()[-40:])
        pytest.fail(f"{' '.join(command)}: {done.returncode}\n{tail}", pytrace=False)
    return done.stdout
