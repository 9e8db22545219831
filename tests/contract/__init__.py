"""Test suites of contracts, each run on every implementation."""
