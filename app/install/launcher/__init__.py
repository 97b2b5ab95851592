"""What happens before anything is installed: a Python is found, `.venv` is made, filled, checked or repaired.

Standard library only, and nothing else of the project: the rest cannot be imported yet.
"""
