"""Benchmarks: the broker's speed and memory, measured from outside by a neutral client.

They never pass or fail: the README of this folder says how to read the figures.
"""
