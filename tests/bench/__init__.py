"""How fast and how large the broker is, measured from outside by a neutral client.

Never a pass or a fail: the README of this folder says how to read the figures.
"""
