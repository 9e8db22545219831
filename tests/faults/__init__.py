"""What outlives a broker that dies: real processes on real files, and what was promised."""
