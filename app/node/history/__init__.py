"""A node's stored past: checkpoints, the history in SQLite, and what is derived from it."""
