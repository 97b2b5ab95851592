"""Sampling and learning. Engines know tokens, weights and adapters; nothing of swarms, tasks or windows."""
