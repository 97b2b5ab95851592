"""Families played on a grid or along paths."""
