"""The page Try it: conversations, races between models, and the chat process behind them."""
