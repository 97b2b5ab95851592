"""Processes that the window starts and listens to, the node's first of all."""
