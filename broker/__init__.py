"""A JMS message broker that speaks AMQP 1.0. `docs/design/architecture.md` describes it.

`from broker import Broker` gives the embedded broker, for tests and applications.
"""

from typing import TYPE_CHECKING, Final

__all__ = ["Broker", "__version__"]

__version__: Final = "0.1.0"

if TYPE_CHECKING:
    from broker.embedding import Broker
else:

    def __getattr__(name: str) -> object:
        """Return `Broker`, imported on demand: a server does not load the embedding."""
        if name != "Broker":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from jms_broker import check_names

        check_names()
        from broker.embedding import Broker

        return Broker
