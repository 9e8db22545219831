"""The API for operators, below `/api/v1`: the entities of management as resources of HTTP."""
