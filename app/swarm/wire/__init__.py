"""The wire protocol: messages, limits, signatures, refusals, and the encryption of private swarms."""
