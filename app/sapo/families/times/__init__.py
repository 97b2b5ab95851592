"""Families about dates and clocks."""
