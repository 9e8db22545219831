"""Attacks: clients that try to exhaust the broker while it has to serve a healthy client."""
