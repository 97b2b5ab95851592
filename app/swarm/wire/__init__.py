"""The wire protocol: messages, limits, signatures, refusals, and the encrypted line of a private swarm."""
