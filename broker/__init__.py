"""A JMS message broker that speaks AMQP 1.0. `README.md` in this folder is the map."""

from typing import Final

__version__: Final = "0.1.0"
