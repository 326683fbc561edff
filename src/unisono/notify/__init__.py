"""Notifications: mails and webhooks about what happens to workloads.

events.py       what happened to a Workload, read from its conditions alone
recipients.py   the recipients of an event, by the rules of the policy and by what the job asks for
messages.py     an event in words: a mail, and documents for Slack, Teams and other programs
outbox.py       what is still to be sent: bounded, limited per recipient, tried again
controller.py   finds events that were not told yet, and records which were
delivery.py     empties the outbox over the network; only the leader does
assembly.py     all of it put together
network.py      SMTP and HTTP, each call in a thread and with a time limit
"""
