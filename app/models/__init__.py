"""Downloading models from a hub, in a process of its own. engines.models reads a model's files and knows what
it needs.
"""
