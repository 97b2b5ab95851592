"""Benchmarks of whole runs: the window, hours of faults, attackers, and the families."""
