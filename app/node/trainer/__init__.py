"""The trainer process, and the node's connection to it."""
