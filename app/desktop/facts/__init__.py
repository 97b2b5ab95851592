"""What every source shares: the facts, this process's own kin, clocks, and the system's libraries."""
