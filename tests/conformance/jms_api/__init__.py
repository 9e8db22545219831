"""The suite of JMS rules, in Java over Qpid JMS: what an application of JMS sees of a broker."""
