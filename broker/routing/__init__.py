"""Queues, topics and JMS rules for them; no frames, sockets or SQL, and no clock of its own."""
