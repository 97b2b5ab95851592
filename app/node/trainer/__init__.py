"""The trainer process, and the node's end of it."""
