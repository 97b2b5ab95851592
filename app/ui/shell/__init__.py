"""The window around the pages: its start and end, side bar, tray, and one window for one data folder."""
