"""The models on this computer: download from a hub, the catalogue, the local store, memory fit, and export.
engines.models reads a model's files."""
