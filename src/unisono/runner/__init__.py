"""Runs pods on this machine, simulated or as real processes.

containers   the state of each container            ┐
lifecycle    which container starts or stops next   │ pure, and the same for both
status       the pod's status, as a kubelet has it  ┘
simulated/   pods that only report what a kubelet would: thousands at once, on any clock
process/     pods whose containers are processes of this machine
"""
