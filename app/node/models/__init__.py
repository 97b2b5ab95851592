"""The models of a data folder: which there are, how fast they are, going back, and exports."""
