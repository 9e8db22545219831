"""A broker in the process of a test or application: fast to start, observable, with faults."""

from broker.embedding.broker import Broker
from broker.embedding.message import MessageView
from broker.embedding.settlement_recorder import Settlement

__all__ = ["Broker", "MessageView", "Settlement"]
