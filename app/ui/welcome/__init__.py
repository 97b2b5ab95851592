"""The steps of the first run, with a measured trial of this computer."""
