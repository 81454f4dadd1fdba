"""The pages that `graft setup` shows in a browser: no script, nothing loaded from anywhere, every value escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from graft.grants import EVENTS, PERMISSIONS

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
td, th { text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
button { font: inherit; padding: .6rem 1.2rem; cursor: pointer; }
code { font-size: .9em; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } a { color: #8bf; } }
"""


def form_page(*, manifest: Mapping[str, Any], form_url: str, owner: str, output: str) -> str:
    """What the App will be allowed to do and why, and the button that goes to GitHub."""
    permissions = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(grant.level)}</td><td>{escape(grant.why)}</td></tr>"
        for name, grant in PERMISSIONS.items()
    )
    events = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(grant.why)}</td></tr>"
        for name, grant in EVENTS.items()
    )
    return _page(
        "Set up Graft",
        f"""
<h1>Set up Graft</h1>
<p>GitHub will make a private App named <strong>{escape(str(manifest["name"]))}</strong> for
<strong>{escape(owner)}</strong>. Webhooks will go to <code>{escape(manifest["hook_attributes"]["url"])}</code>,
and the credentials into <code>{escape(output)}</code> on the machine where <code>graft setup</code> runs.</p>
<h2>What it may do, and why</h2>
<table><tr><th>permission</th><th>level</th><th>why</th></tr>{permissions}</table>
<h2>What it is told</h2>
<table><tr><th>event</th><th>when</th></tr>{events}</table>
<form method="post" action="{escape(form_url)}">
<input type="hidden" name="manifest" value="{escape(json.dumps(manifest))}">
<button type="submit" id="create">Create the App on GitHub</button>
</form>
""",
    )


def done_page(*, name: str, install_url: str, output: str) -> str:
    """The App is there; what remains is to install it."""
    return _page(
        "Graft is set up",
        f"""
<h1>Graft is set up</h1>
<p id="done">The App <strong>{escape(name)}</strong> is registered and its credentials are in
<code>{escape(output)}</code>.</p>
<p><a href="{escape(install_url)}" rel="noreferrer">Install it on your repositories</a>, then start Graft. This
window can be closed.</p>
""",
    )


def problem_page(problem: str) -> str:
    """Something went wrong; nothing was written."""
    return _page("Graft is not set up", f'<h1>Graft is not set up</h1><p id="problem">{escape(problem)}</p>')


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    )
