"""Commands that learn, play and show: run, window, chat, puzzle, race."""
