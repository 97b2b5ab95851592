"""How Shoal is installed and updated: set-up of a checkout, engine packs, new versions."""
