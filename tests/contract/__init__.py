"""One suite for every filling of a contract."""
