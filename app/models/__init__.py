"""Fetching models from a hub, in a process of its own. What lies where, what a hub has of a model, and what it
needs, is known to engines.models.
"""
