"""The window around the pages: its start and end, side bar, tray, and the rule of one window per data
folder."""
