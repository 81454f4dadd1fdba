"""What a policy would decide about a pull request on GitHub: reads the pull request with a given token.

Of the pull request's text only what may hold injection markers is looked at; nothing is kept or written.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from graft import github, intent, provenance, records
from graft.cli.policy_facts import Assumed, gather
from graft.cli.policy_sources import read_file
from graft.config import ReaderSettings
from graft.errors import ConfigError
from graft.github import CommitFiles, pulls, repositories, snapshot
from graft.policy import Decision, decide, load

_PULL = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]{0,99}/[\w.-]{1,100})#(?P<number>[1-9][0-9]{0,9})", re.ASCII)


async def of_pull(text: str, file: Path | None, assumed: Assumed) -> Decision:
    """Judge `OWNER/REPO#N` by the policy on its base branch now, or by `file`.

    Raises `ConfigError` for a missing token or another form of text, and what `graft.github` raises.
    """
    wanted = _PULL.fullmatch(text)
    if wanted is None:
        raise ConfigError(["write the pull request as OWNER/REPO#N, for example octo/repo#12"])
    settings = ReaderSettings.from_env(os.environ)
    name, number = wanted["name"], int(wanted["number"])
    async with github.with_token(settings.github_token.value, api_url=settings.github_api_url) as client:
        pull = await pulls.read_pull(client, name, number)
        base = await repositories.read_branch_head(client, name, pull.base_ref)
        change = await snapshot.read_snapshot(
            client, name, base_sha=base, head_sha=pull.head_sha, number=number, expected=pull.counts
        )
        files, head = CommitFiles(client, name, base), CommitFiles(client, name, pull.head_sha)
        loaded = read_file(str(file)) if file is not None else await load(files)
        found = await records.read(files, head, change, records.Memory())
    who = provenance.resolve(
        change.commits,
        author=pull.author,
        truncated=change.commits_truncated,
        branch=pull.head_ref,
        body=pull.body,
    )
    suspicions = intent.suspect(title=pull.title, body=pull.body, snapshot=change)
    facts = gather(
        change,
        loaded,
        who,
        assumed,
        records=found,
        base_ref=pull.base_ref,
        labels=(*pull.labels, *assumed.labels),
        draft=pull.draft,
        injection=tuple(suspicion.marker for suspicion in suspicions),
    )
    return decide(loaded, facts)
