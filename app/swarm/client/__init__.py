"""A node's end of the swarm: one connection, and all that goes over it."""
