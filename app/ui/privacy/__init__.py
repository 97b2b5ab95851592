"""The pages Privacy and Live: what leaves this computer and what arrives, word for word."""
