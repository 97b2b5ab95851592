"""Sets how threads that compute together wait for each other (spin for a tenth of a millisecond, then sleep)
and, in measurements, the instruction set to use (engines.facts.ISA). OpenMP and torch read both when torch or
llama.cpp is loaded, so import this module before them.

By default OpenMP spins for milliseconds, which made a busy machine five times slower. With its passive policy,
which sleeps immediately, each of the many barriers of a token costs two thread switches: 135 M parameters then
took 1.3 to 2.5 times as long on two idle cores, and no less on busy ones (app/lab/LOG.md)."""

from __future__ import annotations

import os

from engines.facts import isa_variables

_WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "2000"}
_INSTRUCTIONS = isa_variables()
VARIABLES = {**_WAITING, **_INSTRUCTIONS}
"""Environment variables for every process that computes."""

for _name, _value in _WAITING.items():  # unless the owner has set another
    os.environ.setdefault(_name, _value)
os.environ.update(_INSTRUCTIONS)
