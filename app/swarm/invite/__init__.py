"""Finding and joining a swarm: invites, words of private swarms, relays on the local network."""
