"""GGUF files: from a checkpoint to one, and back."""
