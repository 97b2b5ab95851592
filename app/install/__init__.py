"""How Shoal comes onto a computer and is renewed: set-up of a checkout, engine packs, new versions."""
