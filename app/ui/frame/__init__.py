"""What all pages share: the frame around them, and what they may ask for."""
