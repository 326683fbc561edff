"""Pods whose containers are processes of this machine.

launch       what to start: command, environment, directories     ┐
environment, expand, files, mounts, hosts, ports, devices         │ pure
kubelet      what is to run, to stop, and what a status says      ┘
disk, machine                                                     thin
shim, rooms  the small program that watches over one container    stands alone
"""
