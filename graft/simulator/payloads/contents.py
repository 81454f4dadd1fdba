"""Files, directories, symbolic links and submodules as the contents API shows them."""

from __future__ import annotations

import base64
from urllib.parse import quote

from graft.simulator.payloads.accounts import Json, Urls
from graft.simulator.payloads.repositories import api_url, web_url
from graft.simulator.repository_git import TreeEntry
from graft.simulator.state import Repository

# REST "Get repository content": above this the content is left out, unless it is asked for raw.
MAX_INLINE = 1024 * 1024
MAX_RAW = 100 * 1024 * 1024


def kind(entry: TreeEntry) -> str:
    if entry.kind == "tree":
        return "dir"
    if entry.kind == "commit":
        return "submodule"
    return "symlink" if entry.mode == "120000" else "file"


def item(entry: TreeEntry, path: str, size: int, ref: str, of: Repository, urls: Urls) -> Json:
    """What all kinds have in common, and the whole row of a directory's list."""
    escaped = quote(path)
    api = f"{api_url(of, urls)}/contents/{escaped}?ref={quote(ref)}"
    found = kind(entry)
    database = {"dir": "trees", "submodule": ""}.get(found, "blobs")
    git_url = f"{api_url(of, urls)}/git/{database}/{entry.sha}" if database else None
    page = "tree" if found == "dir" else "blob"
    html_url = f"{web_url(of, urls)}/{page}/{quote(ref)}/{escaped}" if database else None
    raw = f"{urls.web}/raw/{of.full_name}/{quote(ref)}/{escaped}" if found in ("file", "symlink") else None
    return {
        "name": path.rpartition("/")[2],
        "path": path,
        "sha": entry.sha,
        "size": size,
        "url": api,
        "html_url": html_url,
        "git_url": git_url,
        "download_url": raw,
        "type": found,
        "_links": {"self": api, "git": git_url, "html": html_url},
    }


def listed(entry: TreeEntry, directory: str, ref: str, of: Repository, urls: Urls) -> Json:
    """A row of a directory. There a submodule is called a file, for the sake of old clients (REST docs)."""
    path = f"{directory}/{entry.path}" if directory else entry.path
    row = item(entry, path, entry.size or 0, ref, of, urls)
    return {**row, "type": "file"} if row["type"] == "submodule" else row


def file(entry: TreeEntry, content: bytes, ref: str, of: Repository, urls: Urls) -> Json:
    """A file with its content, or without it when it is large."""
    row = item(entry, entry.path, len(content), ref, of, urls)
    if len(content) > MAX_INLINE:
        return {**row, "content": "", "encoding": "none"}
    return {**row, "content": base64.encodebytes(content).decode(), "encoding": "base64"}


def symlink(entry: TreeEntry, target: bytes, ref: str, of: Repository, urls: Urls) -> Json:
    row = item(entry, entry.path, len(target), ref, of, urls)
    return {**row, "target": target.decode("utf-8", "replace")}


def submodule(entry: TreeEntry, source: str | None, ref: str, of: Repository, urls: Urls) -> Json:
    return {**item(entry, entry.path, 0, ref, of, urls), "submodule_git_url": source}
