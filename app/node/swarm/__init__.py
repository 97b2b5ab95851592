"""The node's part in a swarm: which one it joins, what it publishes and fetches, and hosting a relay."""
