"""Stores that outlive the broker: contract and implementations. Imports nothing of the broker."""
