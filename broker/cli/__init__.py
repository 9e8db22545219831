"""The entry point of the command `jms-broker`.

`serve` with plain options bypasses typer, so that a broker that runs for months does not keep a
command line in memory. typer handles everything else, including wrong options and --help.
"""

import os
import sys

from broker.cli.serve import plain_options, run


def main() -> None:
    """Run the command that the process's arguments name."""
    command, *arguments = sys.argv[1:] or [""]
    options = plain_options(arguments) if command == "serve" else None
    if options is not None:
        if sys.stdout is None:  # a supervisor has closed it: no program reads the ready line
            sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
        run(options)
        return
    from broker.cli.application import application
    from broker.cli.ending import output_errors_told

    with output_errors_told():
        application(prog_name="jms-broker")
