"""From the records of studies to their tables, pictures and the report."""
