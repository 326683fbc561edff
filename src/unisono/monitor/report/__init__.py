"""Who used what, at what price, and what to do about it: a report of a period.

model.py       the report as data; every format says what it says
figures.py     from the rows of the ledger to that
faults.py      what broken and slow nodes cost, and whom
advice.py      what would be better, with what it would save
written.py     text, Markdown, CSV and JSON
sreport.py     as Slurm's sreport prints it
opencost.py    as OpenCost answers
html.py        one page that opens anywhere, without scripts
mail.py        the same as a message with attachments
"""
