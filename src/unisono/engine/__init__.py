"""The pure core: it decides.

The ten files that matter, in reading order:

     1. `cycle.py`                          the loop: one plan from one state
     2. `model/workload.py`, `model/plan.py`  what goes in, what comes out
     3. `state/cluster.py`                  the cluster as events leave it
     4. `candidates.py`                     what a cycle evaluates, in which order
     5. `nominate.py`                       what one workload could get
     6. `quota/assign.py`                   flavors for its pod sets
     7. `placement/gang.py`                 nodes for all of its pods, or none
     8. `preemption/classical.py`           victims, where it may preempt
     9. `decide.py`                         admit, preempt or wait, on a transaction
    10. `backfill/reservation_table.py`     what may start ahead of what waits

Then `state/apply_plan.py` makes a plan true, and `audit/` checks it independently. The layers, and
the way of a gang through them, are in `docs/architecture.md`.
"""
