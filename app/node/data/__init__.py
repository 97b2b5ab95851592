"""The data folder: where it is, what it contains, who may read it, moving it and removing everything."""
