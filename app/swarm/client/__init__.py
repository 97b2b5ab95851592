"""The node's side of a relay connection and everything sent over it."""
