"""The first minute, with the measured trial in it."""
