"""Every change of the tables, numbered, oldest first."""
