"""Commands that work on Shoal's source: test, translations."""
