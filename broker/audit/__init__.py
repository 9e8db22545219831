"""Audit records: who did what to which resource, in files that show later changes."""
