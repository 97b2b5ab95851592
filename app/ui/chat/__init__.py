"""The page Try it: conversations, races and duels, and the chat process behind them."""
