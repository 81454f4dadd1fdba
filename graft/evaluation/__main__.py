"""`python -m graft.evaluation`, in the root of the repository: renew baselines, schemas and the tables of the docs."""

from pathlib import Path

from graft.evaluation.generated import files, renew

if __name__ == "__main__":
    root = Path.cwd()
    written = renew(root)
    for path, text in files(root).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    print("\n".join(str(path.relative_to(root)) for path in written))
