"""A study: every arm with every seed, here or dealt to a cluster."""
