"""Process management: priority, memory limit, stop signals, environment, and passing secrets to a child
process."""
