"""All tests of the broker and its tools; README.md tells how to run them."""
