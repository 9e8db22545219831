"""The examples of the documents run as they are printed."""
