"""The model as a fish and the swarm as water: drawings that move."""
