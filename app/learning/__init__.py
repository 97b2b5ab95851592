"""The pure middle of a round, for a node and for the lab alike: which questions to ask, which peer groups to
take, and from scored groups and the learner's state to weights, optimiser steps and the next state. No tensors,
files, sockets or clocks."""
