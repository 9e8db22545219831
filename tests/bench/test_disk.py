"""The file system of a folder, found in the list of mounts."""

from pathlib import Path

import pytest

from tests.bench.disk import FileSystem, disk_folder, file_system, file_system_of

MOUNTS = """\
/dev/vda / ext4 rw,relatime 0 0
tmpfs /tmp tmpfs rw 0 0
/dev/vdb /srv/a\\040b xfs rw 0 0
/dev/vdc /srv/b ext4 rw 0 0
tmpfs /srv/b tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        pytest.param("/var/tmp", FileSystem("ext4", "/dev/vda"), id="the root's"),
        pytest.param("/tmp", FileSystem("tmpfs", "tmpfs"), id="a mount point itself"),
        pytest.param("/tmp/bench-1/data", FileSystem("tmpfs", "tmpfs"), id="below a mount point"),
        pytest.param("/tmpfs", FileSystem("ext4", "/dev/vda"), id="a name that begins alike"),
        pytest.param("/srv/a b/c", FileSystem("xfs", "/dev/vdb"), id="a space in its name"),
        pytest.param("/srv/b", FileSystem("tmpfs", "tmpfs"), id="mounted over another"),
    ],
)
def test_the_file_system_of_a_folder(folder: str, expected: FileSystem) -> None:
    assert file_system(Path(folder), MOUNTS) == expected


def test_stores_lie_on_no_file_system_in_memory() -> None:
    assert file_system_of(disk_folder()).kind not in {"tmpfs", "ramfs"}
