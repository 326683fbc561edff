"""GPU usage and cost of a period, and what would save money.

model.py       the report as data; every format shows the same
build.py       from the rows of the ledger to that
faults.py      work lost to broken and slow nodes, by user
advice.py      what would improve a job, and what it would save
formats.py     text, Markdown, CSV and JSON
other_tools.py as Slurm's sreport prints it, and as OpenCost answers
html.py        one page without scripts, and the same as a mail with attachments
"""
