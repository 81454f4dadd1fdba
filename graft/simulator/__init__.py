"""A GitHub REST API over a local git repository, for the demo, the tests and the benchmarks.

It offers the operations that Graft uses with GitHub's status codes, headers, pages, media types and limits,
sends signed webhooks, and can be made to misbehave (`Simulator.faults`). It never writes to the repository.
Production code does not import it.

    async with Simulator(webhook_url="http://127.0.0.1:8080/webhooks/github") as sim:
        repository = sim.add_repository("octo/shop", "/path/to/repository.git")
        pull = await sim.open_pull(repository, head="feature")   # sends a signed pull_request.opened
        await sim.drain()                                        # until it was answered
        sim.faults.fail_after("POST /repos/{owner}/{repo}/issues/{number}/comments")
        await sim.synchronize(pull, "feature~1")
"""

from graft.simulator.faults import Faults
from graft.simulator.identity import generate_private_key
from graft.simulator.server import RequestRecord
from graft.simulator.simulator import Simulator
from graft.simulator.state import CheckRun, CheckSuite, Comment, Installation, Issue, Pull, Repository
from graft.simulator.webhooks import Delivery, sign

__all__ = [
    "CheckRun",
    "CheckSuite",
    "Comment",
    "Delivery",
    "Faults",
    "Installation",
    "Issue",
    "Pull",
    "Repository",
    "RequestRecord",
    "Simulator",
    "generate_private_key",
    "sign",
]
