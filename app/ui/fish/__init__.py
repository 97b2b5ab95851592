"""The model as a fish: drawings that move."""
