"""Benchmarks of the relay: the load, the servers under load, and the cost of a relay."""
