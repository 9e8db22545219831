"""Clients, clocks and builders that the suites share; fakes with behaviour, no mocks."""
