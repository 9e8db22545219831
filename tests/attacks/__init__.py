"""Attacks: clients that try to exhaust the broker, beside one that it has to go on serving."""
