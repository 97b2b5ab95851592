"""Serves the model to other programs on this computer: an HTTP server with OpenAI's API, on loopback only.

The server process holds no model: a child process does (app.serve.child), started by the first request and
ended after ten idle minutes. It only reads what a node wrote; a node of the same data folder pauses meanwhile
(app.node.rules.orders)."""
