"""Bridges: they take messages from a queue here, and send them to another broker.

Imported only if the settings have a `[[bridge]]`.
"""
