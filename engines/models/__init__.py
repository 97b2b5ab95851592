"""Where models lie on this computer and what their makers recommend. Nothing here imports torch."""

from engines.models.architecture import ModelSettings, read_settings
from engines.models.shelf import locate

__all__ = ["ModelSettings", "locate", "read_settings"]
