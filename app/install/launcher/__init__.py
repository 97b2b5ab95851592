"""The launcher, which runs before anything is installed: finds a Python, and creates, fills, checks or repairs
`.venv`. It uses the standard library only and nothing else of the project, because the rest cannot be imported
yet.

Standard library only, and nothing else of the project: the rest cannot be imported yet."""
