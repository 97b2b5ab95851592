"""Where a swarm is and who may join: invites, private words, relays on the local network."""
