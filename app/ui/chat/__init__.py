"""The page Try it: conversations and races, and the chat process behind them."""
