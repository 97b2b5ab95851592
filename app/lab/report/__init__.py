"""Turns the records of studies into tables, plots and the report."""
