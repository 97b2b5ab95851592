"""The page Swarm: who else is learning, invites, private swarms, and what others showed this model."""
