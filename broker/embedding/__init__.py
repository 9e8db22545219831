"""A broker inside a test or an application: started in milliseconds, watched, and led astray."""

from broker.embedding.broker import Broker
from broker.embedding.message import MessageView
from broker.embedding.settlement_recorder import Settlement

__all__ = ["Broker", "MessageView", "Settlement"]
