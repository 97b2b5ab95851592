"""Texts for people, and their translation."""
