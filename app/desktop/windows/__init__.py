"""What Windows says, and what a program without a console needs there."""
