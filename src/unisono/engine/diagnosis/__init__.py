"""What keeps a pending workload from starting, found on copies of the cluster (ADR 0034).

diagnose.py   the question and its answer; start reading here
trial.py      a copy of the cluster without some causes, and the next cycles in it
ways.py       every flavor tried on its own, with its stage and numbers
lacking.py    what even the empty cluster lacks
removal.py    what it means that a cause is gone, as changes of the state
candidates.py everything that could be in the way, in order of preference
in_steps.py   pauses between trials, for a caller that has other things to do
minimal.py    a minimal sufficient subset: QuickXplain, then deletion
"""

from unisono.engine.diagnosis.diagnose import diagnose, diagnosed

__all__ = ["diagnose", "diagnosed"]
