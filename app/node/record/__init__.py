"""The words that every room of the node shares: records, events, settings of a run, state, reasons, the
snapshot."""
