"""The first run, with the measured trial in it."""
