"""The report as one page: everything inline, readable in light and dark, and on paper.

Repository and model names come from outside; all text is escaped, and the page forbids itself any request.
"""

from __future__ import annotations

from datetime import timedelta
from html import escape as _escape

from graft.pilot.document import Report, Section, Table
from graft.pilot.figures import Figure, as_text, as_value
from graft.pilot.gate import Gate, Outcome
from graft.pilot.plots import draw


def escape(text: str, *, quote: bool = True) -> str:
    """Text for the page; a number and its percent sign stay on one line."""
    return _escape(text, quote=quote).replace(" %", "\u00a0%")


_VERDICTS = {
    Outcome.PASS: ("The gate passes", "good"),
    Outcome.FAIL: ("The gate fails", "bad"),
    Outcome.NOT_ENOUGH_DATA: ("Not enough data yet", "open"),
}


def render(report: Report) -> str:
    """The whole page."""
    last = report.until - timedelta(seconds=1)
    period = f"{report.since:%-d %B %Y} to {last:%-d %B %Y}"
    names = ", ".join(report.repositories) or "no repository"
    sections = "\n".join(_section(section) for section in report.sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>Graft pilot report, {escape(period)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<header>
<p class="kicker">Graft · pilot report</p>
<h1>Is Graft right, and does it save review time?</h1>
<p class="meta"><strong>{escape(period)}</strong> (UTC) · {escape(names)}</p>
</header>
{_banner(report.gate)}
{sections}
<footer>
<p>Made {report.generated_at:%-d %B %Y, %H:%M} UTC by <code>graft report</code>. Every number stands with its
definition, its sample size and its interval; below the sample that it needs, there is no number.
<code>--json</code> and <code>--csv</code> give the same numbers.</p>
</footer>
</main>
</body>
</html>
"""


def _banner(gate: Gate) -> str:
    title, kind = _VERDICTS[gate.outcome]
    figure = gate.accuracy
    shown = as_value(figure.value, "share") if figure.value is not None else f"n = {figure.sample}"
    return f"""<section class="banner {kind}" data-outcome="{gate.outcome}">
<div class="big">{escape(shown)}</div>
<div>
<h2>{title}</h2>
<p>Accuracy of cards: {escape(as_text(figure))}. The gate is {escape(as_value(gate.threshold, "share"))} with at least
{gate.needed} rated cards; {escape(gate.reason)}.</p>
</div>
</section>"""


def _section(section: Section) -> str:
    tiles = "\n".join(_tile(figure) for figure in section.figures)
    plots = "\n".join(
        f"<figure><figcaption>{escape(plot.title)}</figcaption>{draw(plot)}</figure>"
        for plot in section.plots
    )
    known = {section.lead, *(figure.definition for figure in section.figures)}
    tables = "\n".join(_table(table, known) for table in section.tables if table.rows)
    parts = [
        f'<div class="tiles">{tiles}</div>' if tiles else "",
        plots,
        f'<div class="tables">{tables}</div>' if tables else "",
    ]
    return f"""<section id="{escape(section.key)}">
<h2>{escape(section.title)}</h2>
<p class="lead">{escape(section.lead)}</p>
{"".join(parts)}
</section>"""


def _tile(figure: Figure) -> str:
    if figure.value is None:
        value = '<p class="value none">not enough data</p>'
        basis = f"n = {figure.sample:,} {figure.sample_of}, {figure.needed:,} needed"
    else:
        value = f'<p class="value">{escape(as_value(figure.value, figure.unit))}</p>'
        basis = _basis(figure)
    return f"""<article class="tile">
<h3>{escape(figure.name)}</h3>
{value}
<p class="basis">{escape(basis)}</p>
<p class="definition">{escape(figure.definition)}</p>
</article>"""


def _basis(figure: Figure) -> str:
    n = f"n = {figure.sample:,} {figure.sample_of}"
    if figure.low is None or figure.high is None:
        return f"{figure.interval}, {n}"
    low, high = as_value(figure.low, figure.unit), as_value(figure.high, figure.unit)
    quartiles = ""
    if figure.quartiles is not None:
        first, third = (as_value(each, figure.unit) for each in figure.quartiles)
        quartiles = f"; quartiles {first} and {third}"
    return f"{low} to {high}, {figure.interval}; {n}{quartiles}"


def _table(table: Table, known: set[str]) -> str:
    """Rows of figures; the definition is written out unless the section gives it already."""
    quartiles = any(point.figure.quartiles is not None for point in table.rows)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(point.name)}</th>{_cells(point.figure, quartiles)}</tr>'
        for point in table.rows
    )
    definitions = dict.fromkeys(point.figure.definition for point in table.rows)
    said = " ".join(text for text in definitions if text not in known)
    known.update(definitions)
    definition = f"<span>{escape(said)}</span>" if said else ""
    head = "<th>Quartiles</th>" if quartiles else ""
    return f"""<table>
<caption>{escape(table.title)}{definition}</caption>
<thead><tr><th scope="col">{escape(table.by)}</th><th>{"Median" if quartiles else "Value"}</th>
<th>{escape(table.rows[0].figure.interval)}</th>{head}<th>n</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>"""


def _cells(figure: Figure, quartiles: bool) -> str:
    spare = "<td></td>" if quartiles else ""
    if figure.value is None or figure.low is None or figure.high is None:
        said = f"not enough data ({figure.needed:,} needed)"
        return f'<td class="none" colspan="2">{said}</td>{spare}<td>{figure.sample:,}</td>'
    shown = [as_value(each, figure.unit) for each in (figure.value, figure.low, figure.high)]
    if figure.quartiles is not None and spare:
        first, third = (as_value(each, figure.unit) for each in figure.quartiles)
        spare = f"<td>{escape(first)} · {escape(third)}</td>"
    return (
        f"<td><strong>{escape(shown[0])}</strong></td><td>{escape(shown[1])} to {escape(shown[2])}</td>"
        f"{spare}<td>{figure.sample:,}</td>"
    )


_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--paper:#fff;--panel:#f6f8fa;--edge:#d8dee4;
--c0:#8c959f;--c1:#1a7f5a;--c2:#0b62c4;--c3:#c2530a;--good:#1a7f37;--bad:#b42318;--open:#6e5a00;
--goodbg:#e6f6ea;--badbg:#fdeceb;--openbg:#fdf5d8}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa4af;--paper:#0d1117;--panel:#161b22;--edge:#30363d;
--c0:#7d8590;--c1:#3fb98a;--c2:#58a6ff;--c3:#f0883e;--good:#56d364;--bad:#ff7b72;--open:#e3b341;
--goodbg:#12261a;--badbg:#2d1415;--openbg:#272115}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Helvetica,Arial,sans-serif}
main{max-width:980px;margin:0 auto;padding:40px 28px 56px}
h1{font-size:30px;line-height:1.2;margin:0 0 8px;letter-spacing:-.01em}
h2{font-size:21px;margin:0 0 4px;letter-spacing:-.005em}
h3{font-size:13px;font-weight:600;margin:0;color:var(--soft)}
p{margin:0}
code{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
.kicker{font-size:12px;font-weight:700;text-transform:uppercase;letter-spacing:.08em;color:var(--soft);margin-bottom:6px}
.meta{color:var(--soft)}
section{margin-top:44px}
.lead{color:var(--soft);max-width:70ch;margin-bottom:18px}
.banner{display:flex;gap:26px;align-items:center;border:1px solid var(--edge);border-left:6px solid;border-radius:10px;
padding:20px 24px;margin-top:26px}
.banner .big{font-size:42px;font-weight:700;letter-spacing:-.02em;white-space:nowrap}
.banner.good{border-left-color:var(--good);background:var(--goodbg)}.banner.good .big,.banner.good h2{color:var(--good)}
.banner.bad{border-left-color:var(--bad);background:var(--badbg)}.banner.bad .big,.banner.bad h2{color:var(--bad)}
.banner.open{border-left-color:var(--open);background:var(--openbg)}.banner.open .big,.banner.open h2{color:var(--open)}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(270px,1fr));gap:12px}
.tile{background:var(--panel);border:1px solid var(--edge);border-radius:8px;padding:14px 16px;break-inside:avoid}
.value{font-size:25px;font-weight:650;line-height:1.25;letter-spacing:-.01em;margin:2px 0}
.value.none{font-size:17px;font-weight:600;color:var(--soft);padding:6px 0}
.basis{font-size:12.5px;color:var(--ink)}
.definition{font-size:12px;line-height:1.4;color:var(--soft);margin-top:6px}
figure{margin:20px 0 0;border:1px solid var(--edge);border-radius:8px;padding:14px 16px 8px;break-inside:avoid}
figcaption{font-weight:600;font-size:14px;margin-bottom:6px}
svg{display:block;width:100%;height:auto}
.none{color:var(--soft)}
.tick{font-size:11px;fill:var(--soft)}.tick.small{font-size:9.5px}.tick.name{font-size:12px;fill:var(--ink)}
.grid{stroke:var(--edge);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}
.gate{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:5 4}.gate-name{fill:var(--bad);font-weight:600}
.join{stroke:var(--c2);stroke-width:1.5;opacity:.45}
.hollow{fill:var(--paper);stroke:var(--soft);stroke-width:1.5}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}
.whisker{stroke:var(--c);stroke-width:1.5}.dot{fill:var(--c)}.bar{fill:var(--c)}
.box{fill:var(--c);fill-opacity:.28;stroke:var(--c);stroke-width:1.5}.median{stroke:var(--c);stroke-width:3}
.legend{display:flex;gap:18px;font-size:12.5px;color:var(--soft);margin-bottom:4px}
.key{display:inline-block;width:11px;height:11px;border-radius:2px;background:var(--c);margin-right:6px;vertical-align:-1px}
.tables{display:grid;gap:22px;margin-top:22px}
table{border-collapse:collapse;width:100%;font-size:13.5px;break-inside:avoid}
caption{text-align:left;font-weight:600;margin-bottom:6px}
caption span{display:block;font-weight:400;font-size:12px;color:var(--soft)}
th,td{text-align:left;padding:5px 12px 5px 0;border-bottom:1px solid var(--edge);font-variant-numeric:tabular-nums}
thead th:first-child{width:36%}thead th{font-size:12px;color:var(--soft);font-weight:600}
tbody th{font-weight:500;overflow-wrap:anywhere}
footer{margin-top:48px;padding-top:16px;border-top:1px solid var(--edge);font-size:12.5px;color:var(--soft)}
@media (max-width:640px){main{padding:24px 16px}.banner{flex-direction:column;align-items:flex-start;gap:8px}}
@media print{:root{color-scheme:light;--ink:#000;--soft:#444;--paper:#fff;--panel:#fff;--edge:#bbb;--c0:#8c959f;
--c1:#1a7f5a;--c2:#0b62c4;--c3:#c2530a;--good:#1a7f37;--bad:#b42318;--open:#6e5a00;--goodbg:#fff;--badbg:#fff;--openbg:#fff}
body{font-size:11pt}main{max-width:none;padding:0}section{margin-top:24px}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}h2,.lead{break-after:avoid}}
"""
