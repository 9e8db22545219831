"""Stores in SQL, on SQLAlchemy Core: one set of tables and statements."""
