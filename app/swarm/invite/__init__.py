"""How to find and join a swarm: invites, words of private swarms, relays on the local network."""
