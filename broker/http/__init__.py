"""HTTP: probes, the API for operators, and many messages or events as Arrow streams."""
