"""Commands for researchers: lab, bench, curve, starter."""
