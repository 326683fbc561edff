"""The report as a message: text, the page, and the jobs as a table to open elsewhere."""

from __future__ import annotations

from email.message import EmailMessage
from email.policy import SMTP

from unisono.monitor.report.html import html
from unisono.monitor.report.model import Report
from unisono.monitor.report.written import as_csv, day, text


def mail(report: Report, *, sender: str, to: str) -> bytes:
    """Return the message as a file that mail programs open and servers send."""
    message = EmailMessage(policy=SMTP)
    message["Subject"] = f"GPU usage {day(report.since)[:10]} to {day(report.until)[:10]}"
    message["From"] = sender
    message["To"] = to
    message.set_content(text(report))
    message.add_alternative(html(report), subtype="html")
    message.add_attachment(as_csv(report), subtype="csv", filename="jobs.csv")
    return message.as_bytes()
