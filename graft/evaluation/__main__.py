"""`python -m graft.evaluation`: write the schemas and the tables of the documentation again."""

from pathlib import Path

from graft.evaluation.generated import files

if __name__ == "__main__":
    for path, text in files(Path.cwd()).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(Path.cwd()))
