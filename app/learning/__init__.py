"""The pure part of a training round, shared by the node and the lab: chooses questions and peer groups, and
turns scored groups and the learner's state into weights, optimiser steps and the next state. No tensors, files,
sockets or clocks."""
