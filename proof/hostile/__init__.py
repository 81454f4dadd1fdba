"""What an attacker would write into a pull request, and a look at what becomes of it.

`texts` and `injections` are the payloads, all of them made here; `places` puts one into every spot that takes text
from outside and renders what Graft would post; `page` reads that as GitHub's own parser does and names whatever
came alive; `bombs` are inputs made to cost time. `python -m proof hostile` prints the counts.
"""

from proof.hostile.report import main

__all__ = ["main"]
