"""The node's part in a swarm: choosing one, publishing and fetching groups, and hosting a relay."""
