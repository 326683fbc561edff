"""The simulator: the engine in virtual time, what it replays, and what its results mean.

trace, outcome   what goes in and what comes out, as columns
"""

from unisono.sim.outcome import Outcome as Outcome
from unisono.sim.trace import Trace as Trace
