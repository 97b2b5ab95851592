"""The past of a node: checkpoints, the history in SQLite, and what is read out of them."""
