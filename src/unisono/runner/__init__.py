"""Runs pods on this machine: as a play with a script, or as real processes.

containers   what a container went through          ┐
course       which container is to start next       │ pure, and the same for both
status       what the pod's status says of it       ┘
simulated/   pods that only act as if: thousands at once, on any clock
process/     pods whose containers are processes of this machine
"""
