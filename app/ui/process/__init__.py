"""Processes that the window starts and reads, above all the node's."""
