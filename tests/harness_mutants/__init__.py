"""Whether the conformance harness finds what is wrong with a broker: a null broker, and bugs."""
