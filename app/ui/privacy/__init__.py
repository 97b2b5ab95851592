"""The pages Privacy and Live: what leaves this computer and what comes, word for word."""
