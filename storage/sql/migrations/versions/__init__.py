"""One file a change; `alembic revision` is not used: files are written by hand."""
