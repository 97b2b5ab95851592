"""Benchmarks of the relay: the load, the servers it is put on, and what one costs."""
