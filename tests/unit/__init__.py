"""Unit tests: a test module for each module of `broker` and `storage`, in the same folders."""
