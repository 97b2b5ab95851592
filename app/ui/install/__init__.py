"""Pages and controls for the installation: the engine, new versions of Shoal, the section "Engine and updates"
of the settings, and the processes behind them."""
