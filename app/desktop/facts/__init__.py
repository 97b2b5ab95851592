"""The ground that all sources share: the facts, this process's own kin, clocks, and the system's libraries."""
