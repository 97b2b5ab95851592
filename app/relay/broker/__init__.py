"""What carries groups between relays: memory, a journal on disk, or NATS JetStream."""
