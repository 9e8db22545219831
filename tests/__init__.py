"""Everything that shows whether the broker does what it says; README.md tells how to run it."""
