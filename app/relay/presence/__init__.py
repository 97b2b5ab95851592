"""Who is connected, here and at the swarm's other relays, and what the relay counts about itself."""
