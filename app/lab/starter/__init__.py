"""Makes the starter model in resources/starter: worked examples, corpus, vocabulary, training.

The starter is a tiny model trained from scratch on a mix like the web's: mostly quick guesses, sometimes a
careful line of work, some of it wrong. Reinforcement learning can then discover that showing work improves the
reward."""
