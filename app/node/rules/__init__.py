"""Decides when to run, and how much: the owner's settings, orders and hours, and the decision derived from
them."""
