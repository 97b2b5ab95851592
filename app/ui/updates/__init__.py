"""New versions of Shoal: their card, and the process behind it."""
