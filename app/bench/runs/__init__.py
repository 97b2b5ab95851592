"""Benchmarks of whole runs: the window, the server, attackers, newcomers, and the families."""
