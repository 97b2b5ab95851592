"""The launcher, which runs before anything is installed: finds a Python, and creates, fills, checks or
repairs `.venv`. It uses the standard library only, and no part of the project that needs more."""
