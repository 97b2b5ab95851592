"""Every text that people read, and its language."""
