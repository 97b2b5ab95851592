"""The relay's sockets and its metrics."""
