"""Clients, clocks and builders for all test suites; fakes with behaviour, no mocks."""
