"""Migrations: every change of the tables, numbered, oldest first."""
