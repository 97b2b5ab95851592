"""The tokenizer is engines.models.tokens, for every engine."""

from engines.models.tokens import ChatTokenizer

__all__ = ["ChatTokenizer"]
