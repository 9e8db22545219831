"""Scenarios: a whole broker, most of them on simulated time."""
