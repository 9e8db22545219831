"""Fault tests: broker processes are killed or disturbed, and what they promised must still hold."""
