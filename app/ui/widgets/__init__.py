"""The widgets that pages are made of. They know values and colours, nothing of nodes, files or pages."""
