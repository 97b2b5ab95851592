"""Shared by all pages: the frame around them, and the actions they can request."""
