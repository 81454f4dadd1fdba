"""How many partitions there are, as this process knows it.

The database decides (`graft.store.partitions`). Whoever keeps leases reads the count together with them, so a
lease that stands proves that the count does. Others may be behind by a second after it was changed: what they file
under the old count is found and moved by its holder, see `ActorSystem`.
"""

from __future__ import annotations

import msgspec

from graft import triggers


class Partitioning(msgspec.Struct):
    """The present count; shared by everything in a process that files work."""

    count: int

    def of(self, address: str) -> int:
        """The partition that an address belongs to."""
        return triggers.partition_of(address, self.count)
