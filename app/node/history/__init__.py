"""The past of a node: checkpoints, the history in SQLite, and what is derived from it."""
