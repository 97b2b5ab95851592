"""The engine of an installed app: its page, its section in the settings, and the processes behind them."""
