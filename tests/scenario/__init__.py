"""Whole brokers on simulated time."""
