"""The report as one HTML page, and as a mail with that page and a table of the jobs.

The page has no scripts and loads nothing; it has light and dark colours and prints well.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from html import escape

from unisono.monitor.report.formats import (
    Line,
    Table,
    as_csv,
    day,
    headline_lines,
    hours,
    money,
    tables,
    text,
)
from unisono.monitor.report.model import Report, Share

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2733;--soft:#5b6b7b;--line:#d9e0e7;--paper:#fff;
--tile:#f4f7fa;--busy:#1a7f5a;--idle:#e0a030;--lost:#c4432f;--rest:#9fb0c0}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa8b5;--line:#2d3843;--paper:#12181f;
--tile:#1b232c;--busy:#3fb489;--idle:#e5b454;--lost:#e0705e;--rest:#4b5a69}}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:28px 18px 60px}
h1{font-size:24px;margin:0}h2{font-size:17px;margin:36px 0 8px}
p{color:var(--soft);margin:4px 0 20px}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(168px,1fr));gap:10px}
.tile{background:var(--tile);border-radius:8px;padding:10px 12px}
.tile b{display:block;font-size:20px;font-variant-numeric:tabular-nums}
.tile span,.tile i{color:var(--soft);font-size:12.5px;font-style:normal;display:block}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th{font-weight:600;text-align:left;color:var(--soft);font-size:11.5px;letter-spacing:.04em}
td,th{padding:6px 10px 6px 0;border-bottom:1px solid var(--line);vertical-align:top}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font-size:11px}
.key{display:flex;gap:16px;flex-wrap:wrap;font-size:12.5px;color:var(--soft)}
.key i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
@media print{:root{--ink:#000;--soft:#444;--line:#bbb;--paper:#fff;--tile:#f4f7fa;--busy:#1a7f5a;
--idle:#e0a030;--lost:#c4432f;--rest:#9fb0c0}@page{size:A4 landscape;margin:12mm}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}body{font-size:10.5pt}
main{max-width:none;padding:0}table{font-size:9pt}.wide{overflow:visible}
h2{break-after:avoid}tr,.tile,svg{break-inside:avoid}thead{display:table-header-group}}
"""
_PARTS = (
    ("busy", "busy", "var(--busy)"),
    ("idle", "idle", "var(--idle)"),
    ("lost", "lost", "var(--lost)"),
    ("rest", "starting or unmeasured", "var(--rest)"),
)
_MOST_BARS = 12
_DAY = 86_400
_MOST_DAYS = 400


def html(report: Report) -> str:
    """Return the page."""
    title = f"GPU usage from {day(report.since)} to {day(report.until)} UTC"
    sections = "".join(_section(one, report) for one in tables(report) if one.lines)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{escape(title)}</h1>"
        "<p>Changes are against the same length of time before.</p>"
        f'<div class="tiles">{"".join(_tile(one) for one in headline_lines(report))}</div>'
        f"{_days(report)}{sections}</main></body></html>\n"
    )


def _tile(line: Line) -> str:
    name, value, note = (escape(one) for one in line)
    return f'<div class="tile"><span>{name}</span><b>{value}</b><i>{note or "&nbsp;"}</i></div>'


def _section(table: Table, report: Report) -> str:
    bars = _bars(report.teams) if table.title.startswith("Teams") else ""
    return f"<h2>{escape(table.title)}</h2>{bars}{_table(table)}"


def _table(table: Table) -> str:
    def cells(line: Line, tag: str) -> str:
        return "".join(
            f"<{tag}{' class=n' if at in table.numbers else ''}>{escape(cell)}</{tag}>"
            for at, cell in enumerate(line)
        )

    body = "".join(f"<tr>{cells(line, 'td')}</tr>" for line in table.lines)
    head = f"<tr>{cells(table.columns, 'th')}</tr>"
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def _bars(teams: tuple[Share, ...]) -> str:
    """Draw what teams made of their GPU-hours."""
    shown = teams[:_MOST_BARS]
    most = max((one.amounts.allocated for one in shown), default=0.0)
    if not most:
        return ""
    drawn: list[str] = []
    for row, one in enumerate(shown):
        top, left = row * 26, 150.0
        drawn.append(f'<text x="0" y="{top + 15}">{escape(one.name[:24])}</text>')
        amounts = one.amounts
        rest = amounts.starting + amounts.unmeasured
        values = {"busy": amounts.busy, "idle": amounts.idle, "lost": amounts.lost, "rest": rest}
        for name, _, color in _PARTS:
            width = 640 * values[name] / most
            if width:
                drawn.append(
                    f'<rect x="{left:.1f}" y="{top + 3}" width="{width:.1f}" height="16"'
                    f' fill="{color}"><title>{escape(one.name)}: {hours(values[name])} GPU-hours'
                    f" {name}</title></rect>"
                )
                left += width
        label = f"{hours(amounts.allocated)} h · {money(amounts.cost_cents)}"
        drawn.append(f'<text x="{left + 8:.1f}" y="{top + 15}">{label}</text>')
    key = "".join(
        f'<span><i style="background:{color}"></i>{text}</span>' for _, text, color in _PARTS
    )
    height = 26 * len(shown)
    picture = f'<svg viewBox="0 0 960 {height}" role="img" aria-label="GPU-hours by team">'
    return f'<div class="key">{key}</div>{picture}{"".join(drawn)}</svg>'


def _days(report: Report) -> str:
    """Draw the GPU-hours of every day."""
    if not report.by_day:
        return ""
    most = max(report.by_day.values()) or 1.0
    every = range(report.since - report.since % _DAY, report.until, _DAY)[-_MOST_DAYS:]
    width = min(90.0, 940 / len(every))
    drawn: list[str] = []
    for at, start in enumerate(every):
        amount = report.by_day.get(start, 0.0)
        begin, end = max(start, report.since), min(start + _DAY, report.until)
        if any(since <= begin and end <= until for since, until in report.gaps):
            what = "<title>off, or not recorded</title>"
            drawn.append(f'<text x="{10 + at * width:.1f}" y="114">-{what}</text>')
            continue
        tall = 110 * amount / most
        left = 10 + at * width
        date = datetime.fromtimestamp(start, UTC)
        drawn.append(
            f'<rect x="{left:.1f}" y="{118 - tall:.1f}" width="{max(1.0, width - 4):.1f}"'
            f' height="{tall:.1f}" fill="var(--busy)" rx="2"><title>{date:%Y-%m-%d}:'
            f" {hours(amount)} GPU-hours</title></rect>"
        )
        if width >= 40 or at % 7 == 0:
            drawn.append(f'<text x="{left:.1f}" y="134">{date:%d %b}</text>')
    return (
        "<h2>GPU-hours held, by day</h2>"
        '<svg viewBox="0 0 960 140" role="img" aria-label="GPU-hours held by day">'
        f"{''.join(drawn)}</svg>"
    )


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
