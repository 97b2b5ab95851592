"""The page Try it: conversations, puzzles, and the chat process behind them."""
