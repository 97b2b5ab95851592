"""From completions to rewards, with the sandbox that scores foreign text."""
