"""Pods whose containers are processes of this machine.

launch       what to start: command, environment, directories     ┐
environment, mounts, allocations                                  │ pure
kubelet      what to start and stop, and the pod's status         ┘
disk, machine                                                     files and processes
shim, sandbox  the small program that supervises one container    standard library only
"""
