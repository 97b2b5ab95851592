"""The widgets that pages are made of. They know values and colours, but no nodes, files or pages."""
