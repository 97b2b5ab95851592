"""Painted figures: the curve, tiles, tables and the week."""
