"""A table of users for tests, and a users file that can be read and never written."""

from pathlib import Path

from broker.security.account import UsersError
from broker.security.account_table import AccountRow, AccountTable, RowChange, TableContent
from broker.security.users import Users


class RecordingTable(AccountTable):
    """A table in memory; `patience` are the values that changes were made with."""

    def __init__(self, refusal: str | None = None) -> None:
        self.refusal = refusal
        self.patience: list[float | None] = []
        self.rows = TableContent()

    def content(self) -> TableContent:
        return self.rows

    def change(
        self, name: str, change: RowChange, *, patience_s: float | None = None
    ) -> AccountRow | None:
        if self.refusal is not None:
            raise UsersError(self.refusal)
        self.patience.append(patience_s)
        before = self.rows.rows.get(name)
        rows = {**self.rows.rows, name: change(before)}
        kept = {each: row for each, row in rows.items() if row is not None}
        self.rows = TableContent(kept, self.rows.salt_secret or b"salt")
        return before


def unwritable_file(folder: Path, *users: tuple[str, str], scram: bool = False) -> Path:
    """Return a users file with these names and passwords that nobody can change, root included.

    Its name is so long that a successor, which has a longer one until it is complete, cannot be.
    """
    made = Users(folder / "writable")
    for name, password in users:
        made.add(name, password, administrator=True, scram=scram)
    file = folder / ("u" * 255)
    (folder / "writable").rename(file)
    return file
