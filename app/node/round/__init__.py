"""One round and what belongs to it: placement, peers' groups, steps, the probe, and making it safe."""
