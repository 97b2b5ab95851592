"""Swarm experiments in one process: arms, seeds, tables and plots; and the training of the starter model.

The lab needs no network and no node. It calls the algorithm and an engine directly, so that arms differ only in
what is compared."""
