"""What an installation is made of and how it is kept up to date: the engine, new versions of Shoal, the section
"Engine and updates" of the settings, and the processes behind them."""
