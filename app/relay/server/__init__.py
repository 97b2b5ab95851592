"""The relay's sockets from start to end, and its metrics."""
