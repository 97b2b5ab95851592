"""Commands about swarms: relay, swarm, invite, identity."""
