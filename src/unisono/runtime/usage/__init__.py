"""The usage ledger: written while a cluster runs, read by the page and by reports."""
