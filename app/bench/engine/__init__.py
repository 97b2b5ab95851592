"""Benchmarks of the engines beside alternatives and limits."""
