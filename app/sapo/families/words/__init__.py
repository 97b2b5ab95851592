"""Families about letters and words."""
