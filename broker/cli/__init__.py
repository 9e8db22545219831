"""The command `jms-broker`.

`serve` takes a short way in, so that a broker that runs for months carries no
command line. Everything else, wrong options and --help included, is typer's.
"""

import sys

from broker.cli.serve import plain_options, run


def main() -> None:
    """Run what the process's arguments ask for."""
    command, *arguments = sys.argv[1:] or [""]
    options = plain_options(arguments) if command == "serve" else None
    if options is not None:
        run(options)
        return
    from broker.cli.application import application

    application(prog_name="jms-broker")
