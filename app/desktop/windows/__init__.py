"""Facts from Windows, and what a program without a console needs there."""
