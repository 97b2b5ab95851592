"""Types shared by all of the node: records, events, run settings, state, reasons, and the snapshot."""
