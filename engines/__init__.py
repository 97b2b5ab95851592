"""Sampling and learning. Engines know tokens, weights and adapters, and nothing about swarms, tasks or
windows."""
