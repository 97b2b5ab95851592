"""Swarm experiments in one process: arms, seeds, tables and plots; and how the starter model is made.

The lab needs no network and no node. It drives the algorithm and an engine directly, so that arms differ only
in what is compared.
"""
