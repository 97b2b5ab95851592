"""What Linux says: idle time, power, battery saver, and who keeps the screen awake."""
