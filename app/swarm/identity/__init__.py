"""A node's identity: its key, its name, and where the key is stored."""
