"""The page Swarm: who else is learning, invites, private swarms, and what this model learned from others."""
