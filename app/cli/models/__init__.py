"""Commands about models: models, trial, export."""
