"""Facts from an X server: idle time, and whether a program fills the screen."""
