"""What NVIDIA's driver says of its cards."""
