"""The data folder: where it is, what lies in it, who may read it, moving it and removing everything."""
