"""One round and its parts: placement, peers' groups, optimiser steps, the probe, and saving."""
