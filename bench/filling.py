"""A database that knows many pull requests, made by Postgres itself.

Every pull request has what one has that was worked on: provenance of five commits, a card that was shown, a verdict,
check runs, money spent, three deliveries. Some of them have work that waits.
"""

from __future__ import annotations

from typing import Final

from graft.database import Pool
from graft.store import partitions, work
from graft.triggers import partition_of, pull_address

INSTALLATIONS: Final = 10
PULLS: Final = 100

_FILL: Final = """
INSERT INTO installations (id, account_login) SELECT n, 'octo' || n FROM generate_series(1, {installations}) n
ON CONFLICT DO NOTHING;
INSERT INTO repositories (id, installation_id, full_name)
SELECT n, 1 + n % {installations}, 'octo' || (1 + n % {installations}) || '/repo' || n
  FROM generate_series({first}, {last}) n;
INSERT INTO changes (repository_id, pr_number, head_sha, base_ref, author_login, state, pr_updated_at)
SELECT r, n, md5(r || '-' || n) || '00000000', 'main', 'ann', CASE WHEN n % 3 = 0 THEN 'open' ELSE 'merged' END,
       now() - n * interval '1 hour'
  FROM generate_series({first}, {last}) r, generate_series(1, {pulls}) n;
CREATE TEMPORARY TABLE new AS SELECT * FROM changes WHERE repository_id BETWEEN {first} AND {last};
INSERT INTO change_provenance (change_id, head_sha, author_kind, author_kind_reason, source, agents)
SELECT id, head_sha, 'agent', 'declared', 'declared', ARRAY['claude-code'] FROM new;
INSERT INTO provenance (change_id, commit_sha, source, author_kind, agent)
SELECT id, md5(id || '-' || n), 'declared', 'agent', 'claude-code' FROM new, generate_series(1, 5) n;
INSERT INTO intent_cards (change_id, head_sha, base_sha, status, risk_class, risk_floor, verifier_status, card,
                          prompt_version, input_hash, published_at)
SELECT id, head_sha, head_sha, 'ready', 'logic', 'trivial', 'agrees',
       jsonb_build_object('goal', jsonb_build_object('text', repeat('Retries the payment. ', 10)),
                          'changes', jsonb_agg(jsonb_build_object('text', repeat('It tries again. ', 8)))),
       '1', 'x', now()
  FROM new, generate_series(1, 5) GROUP BY id, head_sha;
INSERT INTO policy_verdicts (change_id, head_sha, base_ref, base_sha, policy_status, outcome, facts_hash)
SELECT id, head_sha, 'main', head_sha, 'none', 'none', 'x' FROM new;
INSERT INTO intent_displays (change_id, card_id, status, shown_at)
SELECT change_id, id, 'ready', now() FROM intent_cards WHERE change_id IN (SELECT id FROM new);
INSERT INTO check_runs (change_id, head_sha, name, check_run_id, external_id, content_hash)
SELECT id, head_sha, name, 1, 'x', 'x'
  FROM new, unnest('{{graft/intent,graft/policy,graft/provenance}}'::text[]) name;
INSERT INTO intent_spend (repository_id, change_id, purpose, model, outcome, tokens, cost_usd, spent_at)
SELECT repository_id, id, purpose, 'claude-opus-5-5', 'ok', 9000, 0.05, now() - pr_number * interval '4 hours'
  FROM new, unnest(ARRAY['writer', 'verifier']) purpose;
INSERT INTO work (address, need, partition, installation_id, repository_id, asked_at, due_at)
SELECT 'pull.' || repository_id || '.' || pr_number, 'reactions', 0, 1 + repository_id % {installations},
       repository_id, now(), now() + interval '1 day'
  FROM new WHERE repository_id <= {live};
INSERT INTO webhook_deliveries (delivery_id, event, status, received_at)
SELECT 'delivery-' || r || '-' || n, 'pull_request', 'accepted', now()
  FROM generate_series({first}, {last}) r, generate_series(1, {pulls} * 3) n;
DROP TABLE new;
-- What nobody on the simulated GitHub knows must not be found missing.
UPDATE work SET due_at = now() + interval '1 day' WHERE address = 'lead';
ANALYZE;
"""


async def fill(pool: Pool, *, first: int = 1, last: int, live: int | None = None) -> None:
    """Add the repositories `first` to `last` with `PULLS` pull requests each; those up to the repository `live` have
    work that waits (all, unless it is given)."""
    statements = _FILL.format(
        installations=INSTALLATIONS, pulls=PULLS, first=first, last=last, live=last if live is None else live
    )
    async with pool.acquire() as connection:
        await connection.execute(statements, timeout=900)
        count = await partitions.count(connection)
        addresses = [pull_address(r, n) for r in range(first, last + 1) for n in range(1, PULLS + 1)]
        await work.rehome(connection, {address: partition_of(address, count) for address in addresses})
