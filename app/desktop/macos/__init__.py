"""Facts from macOS: idle time, low-power mode and heat."""
