"""Write the page of all settings, `docs/reference/configuration.md`, from `config/broker.toml`.

The settings file is what the page is made of, so that each text is written once. The texts of
address settings are on a page of their own (`config/settings_texts.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from broker.address_settings import NAMES
from broker.settings_errors import ENVIRONMENT_PREFIX
from config.settings_texts import FILE, ROOT, TABLES

PAGE: Final = ROOT / "docs" / "reference" / "configuration.md"

SECTION: Final = re.compile(r"^# ---- (.*?) -+$")
SETTING: Final = re.compile(r"^#(\w+) = (.*)$")
TABLE: Final = re.compile(r"^#(\[\w+\]|\[\[\w+\]\])$")

HEADER: Final = """# Configuration

The broker reads its settings from four places; a later one overrides an earlier one:

1. A TOML file that `jms-broker serve --config FILE` or the variable `JMS_BROKER_CONFIG` names.
   `config/broker.toml` shows every setting with its default.
2. The files `*.toml` of the folder `conf.d` beside it, in the order of their names. Tables are
   merged setting by setting, and lists of tables, such as `[[listener]]`, are appended.
3. Environment variables. Each setting has one, which the tables name; `[tls] certificate` is
   `JMS_BROKER_TLS_CERTIFICATE`. A list of tables is JSON, in one variable.
4. Options of `jms-broker serve`: `--bind`, `--port`, `--store`.

Secrets can be in files, as containers mount them: `JMS_BROKER_PASSWORD_FILE` for the password of
the first user, `JMS_BROKER_TLS_KEY_PASSWORD_FILE` for that of a TLS key, and
`JMS_BROKER_STORE_FILE` for the URL of a PostgreSQL store with a password in it. The file contains
nothing but the value; a newline at its end is left out.

Times are milliseconds unless the name ends with `_s`, sizes are bytes, and 0 means no limit
unless the text says otherwise. If a setting is unknown or has a wrong value, the broker does not
start; the error names the allowed values, or the settings with a similar name.

```toml title="broker.toml"
port = 5672
store = "memory"
default_kind = "topic"

[log]
format = "json"
```

```console
$ jms-broker serve --config broker.toml
ready amqp://127.0.0.1:5672 store=memory pid=…
```

`jms-broker config show` prints the settings that a broker would have here, without secrets:

```console
$ mkdir conf.d && echo 'credit = 100' > conf.d/10-credit.toml
$ JMS_BROKER_LOG_LEVEL=debug jms-broker config show --config broker.toml --origin
setting	value	origin
…
credit	100	conf.d/10-credit.toml
…
default_kind	topic	broker.toml
…
log.level	debug	JMS_BROKER_LOG_LEVEL
…
```

`jms-broker config schema` prints a JSON Schema of the settings file. Editors with a language server
for TOML, such as taplo, check and complete settings with it.

SIGHUP reloads the files ([Service](../operations/service.md)). Settings that can differ between
addresses are on [a page of their own](address-settings.md).

The command `make references` writes this page from `config/broker.toml`.
"""


@dataclass(frozen=True)
class Setting:
    """One setting of the file: its name, its default in TOML, its text, and the line of its table.

    `table` is `[log]` of a table, `[[listener]]` of a list of tables, or empty.
    """

    key: str
    default: str
    text: str
    table: str = ""

    @property
    def name(self) -> str:
        """The name with its table."""
        return f"{self.table.strip('[]')}.{self.key}" if self.table else self.key

    @property
    def variable(self) -> str:
        """The environment variable of the setting, empty in a list of tables, which has none."""
        if self.table.startswith("[["):
            return ""
        return ENVIRONMENT_PREFIX + self.name.replace(".", "_").upper()


def sections(text: str) -> Iterator[tuple[str, list[Setting]]]:
    """Yield the sections of the settings file, without those of addresses."""
    title, found = "", list[Setting]()
    table, words = "", list[str]()
    for line in text.splitlines():
        if heading := SECTION.match(line):
            if title:
                yield title, found
            title, found, table, words = heading[1], [], "", []
            if line.startswith(TABLES):
                return
        elif opened := TABLE.match(line):
            table, words = opened[1], []
        elif setting := SETTING.match(line):
            found.append(Setting(setting[1], setting[2], " ".join(words), table=table))
            words = []
        elif line.startswith("# "):
            words.append(line.removeprefix("# "))
        else:
            words = []


def page(text: str) -> str:
    """Return the page made from the text of the settings file."""
    parts = [HEADER]
    for title, settings in sections(text):
        own = [each for each in settings if each.name not in NAMES]
        if not own:
            continue
        parts.append(f"\n## {title[0].upper()}{title[1:]}\n")
        parts.append("| setting, variable | default | meaning |\n|---|---|---|")
        for each in own:
            # settings without a text of their own share that of the one above
            meaning = (each.text or "as above").replace("|", "\\|")
            names = f"`{each.name}`" + (f"<br>`{each.variable}`" if each.variable else "")
            parts.append(f"| {names} | `{each.default}` | {meaning} |")
    return "\n".join(parts) + "\n"


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(FILE.read_text()))
