"""Engine packs: the Python environment with PyTorch, llama.cpp or MLX that an installed app computes with.

The app itself contains none of these; a pack is downloaded, made, checked and only then used. A checkout needs
no pack. `place` says which pack is in use, `manifest` what a pack consists of and who signed it, `wheels`
downloads it, `stages` installs, repairs, rolls back and removes."""
