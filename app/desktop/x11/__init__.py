"""What an X server says: idle time, and whether a program fills the screen."""
