"""Attackers, and the table of which check finds which of them."""
