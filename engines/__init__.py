"""Sampling and learning. Engines work on tokens, weights and adapters, and know nothing of swarms, tasks or
windows."""
