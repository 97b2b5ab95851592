"""The model folder is read in engines.models.folder, for every engine."""

from engines.models.folder import Folder, count_parameters, fingerprint, open_folder, open_weights, read_json

__all__ = ["Folder", "count_parameters", "fingerprint", "open_folder", "open_weights", "read_json"]
