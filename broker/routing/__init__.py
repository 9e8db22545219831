"""Queues, topics and the rules of JMS for them. Knows no frames, sockets, SQL, no clock of its own."""
