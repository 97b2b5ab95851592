"""A model's own files: architecture, tokenizer, weights, adapters and GGUF. Nothing here imports torch."""
