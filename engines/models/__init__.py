"""Where models lie on this computer and what their makers recommend. Nothing here imports torch."""

from engines.models.locate import locate
from engines.models.settings import ModelSettings, read_settings

__all__ = ["ModelSettings", "locate", "read_settings"]
