"""How the starter model in resources/starter is made: worked lines, corpus, vocabulary, training, measurement.

The starter is a tiny model trained from scratch on a mix like the web's: mostly quick guesses, sometimes a
careful line of work, some of it wrong. Reinforcement learning then has something to find: that work pays.
"""
