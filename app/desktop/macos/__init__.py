"""What macOS says: idle time, low-power mode and heat."""
