"""Queues, topics and the rules of JMS for them. Knows no frames, sockets or SQL; has no clock."""
