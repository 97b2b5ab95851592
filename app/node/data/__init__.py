"""The data folder: its location, contents and access rights, moving it, and removing everything."""
