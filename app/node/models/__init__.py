"""The models of a data folder: listing them, predicting their speed, resetting them, and exporting."""
