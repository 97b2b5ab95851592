"""Facts from NVIDIA's driver about its cards."""
