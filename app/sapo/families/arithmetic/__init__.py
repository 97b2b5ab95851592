"""Families of calculating: sums, fractions, equations, geometry, problems in words."""
