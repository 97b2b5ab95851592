"""The model as torch computes it: our own decoder or transformers', its adapter, and the loss."""
