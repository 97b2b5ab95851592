"""The model for other programs on this computer: a server that speaks OpenAI's protocol, on loopback alone.

The serving process holds no model: a child process does (app.serve.child), started by the first request and
ended after ten quiet minutes. It only reads what a node wrote; a node of the same data folder gives way
meanwhile (app.node.rules.orders)."""
