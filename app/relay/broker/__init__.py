"""The brokers that carry groups between relays: memory, a journal on disk, or NATS JetStream."""
