"""How far a relay trusts a key, learnt from spot checks."""
