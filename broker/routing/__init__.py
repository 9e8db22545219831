"""Queues, topics and the rules of JMS for them. Knows no frames, sockets, SQL or clock of its own."""
