"""Every text that people read, and the language they read it in."""
