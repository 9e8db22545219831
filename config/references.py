"""Write every text that is made from the code: pages of reference, parts of `config/broker.toml`.

make references
"""

from __future__ import annotations

from config import (
    brokers_page,
    command_line_page,
    configuration_page,
    core_rules_page,
    jms_rules_page,
    log_page,
    metrics_page,
    settings_texts,
)


def main() -> None:
    """Write the texts; the settings file comes first, since a page is made from it."""
    settings_texts.write()
    configuration_page.write()
    command_line_page.write()
    metrics_page.write()
    log_page.write()
    core_rules_page.write()
    brokers_page.write()
    jms_rules_page.write()


if __name__ == "__main__":
    main()
