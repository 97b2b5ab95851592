"""Benchmarks of the engines beside their peers and limits."""
