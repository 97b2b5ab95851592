"""The model in torch: our own decoder or transformers', its adapter, and the loss."""
