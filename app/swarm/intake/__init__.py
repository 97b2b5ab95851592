"""The checks that a peer's group must pass before the node trains on it, and the buffer of checked groups."""
