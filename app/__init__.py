"""Shoal, the application: the algorithm, the node that runs it, the swarm, and the surfaces people see."""
