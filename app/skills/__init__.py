"""Skills: what one adapter has learned, under a name, and how it is asked."""
