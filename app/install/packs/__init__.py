"""Engine packs: the Python environment with PyTorch, llama.cpp or MLX that an installed app computes with.
The app itself carries none of these; a pack is fetched, made, checked and only then taken into use. A
checkout needs none.

`place` says which pack is in use, `manifest` what a pack consists of, `fetch` brings it, `stages` installs,
repairs, rolls back and removes."""
