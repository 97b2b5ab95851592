"""The page Models: choosing, downloading and storing models."""
