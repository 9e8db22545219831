"""The checks of `jms-broker doctor`: faults of a broker, of its settings, files and machine."""
