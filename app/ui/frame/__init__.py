"""What all pages share: the frame around them, and the actions they may ask for."""
