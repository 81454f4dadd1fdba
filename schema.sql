-- Graft's database, readable as a document. Applied whole by `graft migrate` (graft/database.py); changes to a
-- released schema go into graft/migrations/NNNN_*.sql, expand first, contract one release later.
--
-- What may stand here: SHAs, paths, numbers, ids, logins, reason codes and the model's own prose. Never file
-- contents, diffs, titles, bodies, issue text, prompts or raw answers. GitHub's ids are bigint throughout.
--
-- Every table of results hangs from `installations` through `repositories`, so that removing an installation
-- removes all of it. Tables without that foreign key say why.

-- ---------------------------------------------------------------------------------------------- installations

CREATE TABLE installations (
    id                    bigint PRIMARY KEY,
    account_id            bigint,
    account_login         text,
    account_type          text,
    repository_selection  text,
    permissions           jsonb       NOT NULL DEFAULT '{}',
    events                text[]      NOT NULL DEFAULT '{}',
    suspended_at          timestamptz,
    -- GitHub never uses an installation id again: once set, it stays set.
    deleted_at            timestamptz,
    synced_at             timestamptz,
    created_at            timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE repositories (
    id                bigint PRIMARY KEY,
    installation_id   bigint      NOT NULL REFERENCES installations (id) ON DELETE CASCADE,
    full_name         text        NOT NULL,
    default_branch    text,
    private           boolean     NOT NULL DEFAULT false,
    archived          boolean     NOT NULL DEFAULT false,
    removed_at        timestamptz,
    -- Blob SHAs of what was last seen on each base branch: {branch: {"policy": sha, "records": sha}}.
    watched           jsonb       NOT NULL DEFAULT '{}',
    synced_at         timestamptz,
    created_at        timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX repositories_installation ON repositories (installation_id);
CREATE INDEX repositories_full_name ON repositories (lower(full_name));

CREATE TABLE tasks (
    id             uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    repository_id  bigint      NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    external_id    text        NOT NULL,
    issue_number   int,
    created_at     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (repository_id, external_id)
);

-- ---------------------------------------------------------------------------------------------------- changes

CREATE TABLE changes (
    id                uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    repository_id     bigint      NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    pr_number         int         NOT NULL,
    task_id           uuid        REFERENCES tasks (id) ON DELETE SET NULL,
    head_sha          text        NOT NULL,
    head_repository_id bigint,
    base_ref          text        NOT NULL,
    merge_base_sha    text,
    author_id         bigint,
    author_login      text,
    author_is_bot     boolean     NOT NULL DEFAULT false,
    state             text        NOT NULL CHECK (state IN ('open', 'closed', 'merged')),
    draft             boolean     NOT NULL DEFAULT false,
    opened_at         timestamptz,
    closed_at         timestamptz,
    merged_at         timestamptz,
    merge_commit_sha  text,
    pr_updated_at     timestamptz NOT NULL,
    graft_comment_id  bigint,
    -- The newest state that was published; a publisher with an older number has been overtaken.
    section_seq       bigint      NOT NULL DEFAULT 0,
    -- The publish lease: who may write to GitHub for this change right now (docs/architecture.md).
    publish_token     uuid,
    publish_until     timestamptz,
    reviewers_synced_at timestamptz,
    -- When each step was last forced to run again: {need: seconds since 1970}.
    reruns            jsonb       NOT NULL DEFAULT '{}',
    created_at        timestamptz NOT NULL DEFAULT now(),
    UNIQUE (repository_id, pr_number)
);
CREATE INDEX changes_open ON changes (repository_id, base_ref) WHERE state = 'open';
CREATE INDEX changes_head ON changes (repository_id, head_sha);
CREATE INDEX changes_task ON changes (task_id) WHERE task_id IS NOT NULL;

-- One check run of ours per (change, head, name).
CREATE TABLE check_runs (
    change_id      uuid        NOT NULL REFERENCES changes (id) ON DELETE CASCADE,
    head_sha       text        NOT NULL,
    name           text        NOT NULL,
    check_run_id   bigint      NOT NULL,
    external_id    text        NOT NULL,
    content_hash   text        NOT NULL,
    published_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (change_id, head_sha, name)
);
CREATE INDEX check_runs_id ON check_runs (check_run_id);

-- ------------------------------------------------------------------------------------------------- provenance

-- What each commit's trailers and signatures said.
CREATE TABLE provenance (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    change_id     uuid        NOT NULL REFERENCES changes (id) ON DELETE CASCADE,
    commit_sha    text        NOT NULL,
    source        text        NOT NULL CHECK (source IN ('declared', 'detected', 'none')),
    author_kind   text        NOT NULL,
    agent         text,
    model         text,
    task          text,
    session       text,
    rule          text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (change_id, commit_sha)
);

-- The answer for the change as a whole.
CREATE TABLE change_provenance (
    change_id           uuid PRIMARY KEY REFERENCES changes (id) ON DELETE CASCADE,
    head_sha            text        NOT NULL,
    author_kind         text        NOT NULL
        CHECK (author_kind IN ('agent', 'human', 'mixed', 'automation', 'unknown')),
    author_kind_reason  text        NOT NULL,
    source              text        NOT NULL CHECK (source IN ('declared', 'detected', 'none')),
    agents              text[]      NOT NULL DEFAULT '{}',
    models              text[]      NOT NULL DEFAULT '{}',
    deciding_commits    text[]      NOT NULL DEFAULT '{}',
    hints               text[]      NOT NULL DEFAULT '{}',
    check_run_id        bigint,
    resolved_at         timestamptz NOT NULL DEFAULT now()
);

-- ------------------------------------------------------------------------------------------------------ cards

CREATE TABLE intent_cards (
    id                   uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    change_id            uuid        NOT NULL REFERENCES changes (id) ON DELETE CASCADE,
    head_sha             text        NOT NULL,
    base_sha             text        NOT NULL,
    status               text        NOT NULL,
    reason               text,
    risk_class           text        NOT NULL CHECK (risk_class IN ('trivial', 'logic', 'sensitive')),
    risk_floor           text        NOT NULL CHECK (risk_floor IN ('trivial', 'logic', 'sensitive')),
    risk_writer          text        CHECK (risk_writer IN ('trivial', 'logic', 'sensitive')),
    risk_first_pass      text        CHECK (risk_first_pass IN ('trivial', 'logic', 'sensitive')),
    risk_verifier        text        CHECK (risk_verifier IN ('trivial', 'logic', 'sensitive')),
    verifier_status      text        NOT NULL,
    injection_suspected  boolean     NOT NULL DEFAULT false,
    -- The whole typed card (the model's prose, paths, codes, numbers), as graft.intent writes and reads it.
    card                 jsonb       NOT NULL,
    writer_model         text,
    verifier_model       text,
    prompt_version       text        NOT NULL,
    input_hash           text        NOT NULL,
    diff_fingerprint     text,
    input_tokens         int         NOT NULL DEFAULT 0,
    output_tokens        int         NOT NULL DEFAULT 0,
    cache_read_tokens    int         NOT NULL DEFAULT 0,
    cache_write_tokens   int         NOT NULL DEFAULT 0,
    llm_calls            int         NOT NULL DEFAULT 0,
    carried_from         uuid        REFERENCES intent_cards (id) ON DELETE SET NULL,
    created_at           timestamptz NOT NULL DEFAULT now(),
    -- GitHub's clock, when it first stood in the comment.
    published_at         timestamptz
);
CREATE INDEX intent_cards_change ON intent_cards (change_id, head_sha, created_at DESC);
CREATE INDEX intent_cards_carried ON intent_cards (carried_from) WHERE carried_from IS NOT NULL;

-- Which card the comment showed, from when on (GitHub's clock): reactions are attributed by it.
CREATE TABLE intent_displays (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    change_id  uuid        NOT NULL REFERENCES changes (id) ON DELETE CASCADE,
    card_id    uuid        REFERENCES intent_cards (id) ON DELETE CASCADE,
    status     text        NOT NULL,
    shown_at   timestamptz NOT NULL
);
CREATE INDEX intent_displays_change ON intent_displays (change_id, shown_at DESC);

CREATE TABLE intent_feedback (
    id             uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    card_id        uuid        NOT NULL REFERENCES intent_cards (id) ON DELETE CASCADE,
    change_id      uuid        NOT NULL REFERENCES changes (id) ON DELETE CASCADE,
    user_id        bigint      NOT NULL,
    user_login     text        NOT NULL,
    verdict        text        NOT NULL CHECK (verdict IN ('accurate', 'wrong')),
    source         text        NOT NULL CHECK (source IN ('reaction', 'button')),
    is_pr_author   boolean     NOT NULL,
    voted_at       timestamptz NOT NULL,
    withdrawn_at   timestamptz,
    recorded_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (card_id, user_id, source)
);
CREATE INDEX intent_feedback_change ON intent_feedback (change_id);

-- Append only: one row per model run.
CREATE TABLE intent_spend (
    id             uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    repository_id  bigint        NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    change_id      uuid          REFERENCES changes (id) ON DELETE SET NULL,
    purpose        text          NOT NULL,
    model          text          NOT NULL,
    outcome        text          NOT NULL,
    tokens         int           NOT NULL,
    cost_usd       numeric(12,6) NOT NULL,
    spent_at       timestamptz   NOT NULL DEFAULT now()
);
CREATE INDEX intent_spend_time ON intent_spend (spent_at);
CREATE INDEX intent_spend_day ON intent_spend (repository_id, spent_at);
CREATE INDEX intent_spend_change ON intent_spend (change_id);

-- Money promised to a call under way. It counts at its estimate until it is settled into `intent_spend`.
CREATE TABLE spend_reservations (
    id             uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    repository_id  bigint        NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    change_id      uuid          REFERENCES changes (id) ON DELETE SET NULL,
    purpose        text          NOT NULL,
    model          text          NOT NULL,
    estimate_usd   numeric(12,6) NOT NULL,
    reserved_at    timestamptz   NOT NULL DEFAULT now()
);
CREATE INDEX spend_reservations_day ON spend_reservations (repository_id, reserved_at);
CREATE INDEX spend_reservations_change ON spend_reservations (change_id);

-- ----------------------------------------------------------------------------------------------------- policy

CREATE TABLE policy_verdicts (
    id                uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    change_id         uuid        NOT NULL REFERENCES changes (id) ON DELETE CASCADE,
    head_sha          text        NOT NULL,
    base_ref          text        NOT NULL,
    base_sha          text        NOT NULL,
    policy_path       text,
    policy_hash       text,
    policy_status     text        NOT NULL CHECK (policy_status IN ('none', 'valid', 'invalid', 'unreadable')),
    outcome           text        NOT NULL CHECK (outcome IN ('approve', 'review', 'block', 'none')),
    rule_index        int,
    -- [{rule, state, code}]: indices and reason codes, never names or values of the file.
    rules             jsonb       NOT NULL DEFAULT '[]',
    guards            text[]      NOT NULL DEFAULT '{}',
    check_conclusion  text        NOT NULL DEFAULT 'neutral' CHECK (check_conclusion = 'neutral'),
    check_run_id      bigint,
    card_id           uuid        REFERENCES intent_cards (id) ON DELETE SET NULL,
    facts_hash        text        NOT NULL,
    evaluated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX policy_verdicts_change ON policy_verdicts (change_id, evaluated_at DESC);
CREATE INDEX policy_verdicts_card ON policy_verdicts (card_id);

-- Phase 1's post-merge guard; not written yet.
CREATE TABLE guard_events (
    id                 uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    repository_id      bigint      NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    culprit_change_id  uuid        REFERENCES changes (id) ON DELETE SET NULL,
    status             text        NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT now()
);

-- ------------------------------------------------------------------------------------------------------ pilot

CREATE TABLE pr_reviewers (
    change_id    uuid        NOT NULL REFERENCES changes (id) ON DELETE CASCADE,
    user_id      bigint      NOT NULL,
    user_login   text        NOT NULL,
    reason       text        NOT NULL,
    verified     boolean     NOT NULL,
    recorded_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (change_id, user_id)
);

CREATE TABLE reviewer_check_denials (
    change_id    uuid        NOT NULL REFERENCES changes (id) ON DELETE CASCADE,
    user_id      bigint      NOT NULL,
    status       smallint    NOT NULL CHECK (status IN (403, 404)),
    recorded_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (change_id, user_id)
);

CREATE TABLE review_time_runs (
    id             uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    repository_id  bigint      NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    period         text        NOT NULL CHECK (period IN ('baseline', 'shadow')),
    from_date      date        NOT NULL,
    to_date        date        NOT NULL,
    settings       jsonb       NOT NULL DEFAULT '{}',
    started_at     timestamptz NOT NULL DEFAULT now(),
    finished_at    timestamptz,
    UNIQUE (repository_id, period, from_date, to_date)
);

CREATE TABLE review_time_prs (
    run_id                uuid    NOT NULL REFERENCES review_time_runs (id) ON DELETE CASCADE,
    pr_number             int     NOT NULL,
    author_kind           text    NOT NULL,
    risk_class            text,
    start_basis           text    NOT NULL CHECK (start_basis IN ('opened', 'ready_for_review')),
    started_at            timestamptz NOT NULL,
    first_review_at       timestamptz,
    merged_at             timestamptz,
    first_review_seconds  bigint,
    merge_seconds         bigint,
    changed_lines         int,
    changed_files         int,
    excluded              text,
    PRIMARY KEY (run_id, pr_number)
);

CREATE TABLE incidents (
    id                 uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    repository_id      bigint      NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    issue_number       int,
    culprit_pr_number  int,
    fix_pr_number      int,
    source             text        NOT NULL CHECK (source IN ('label', 'manual')),
    occurred_at        timestamptz NOT NULL DEFAULT now(),
    removed_at         timestamptz,
    -- What a person removed stays removed; what lost its label comes back with the label.
    removed_by         text        CHECK (removed_by IN ('label', 'manual')),
    recorded_at        timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX incidents_issue ON incidents (repository_id, issue_number) WHERE issue_number IS NOT NULL;
CREATE UNIQUE INDEX incidents_manual ON incidents (repository_id, culprit_pr_number, coalesce(fix_pr_number, 0))
    WHERE issue_number IS NULL;

-- Requests to GitHub made while working on a repository's pull requests, by day (UTC).
CREATE TABLE api_calls (
    repository_id  bigint NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    day            date   NOT NULL,
    calls          bigint NOT NULL,
    PRIMARY KEY (repository_id, day)
);

CREATE TABLE metrics_daily (
    repository_id   bigint      NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    day             date        NOT NULL,
    rollup_version  int         NOT NULL,
    counts          jsonb       NOT NULL,
    computed_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (repository_id, day, rollup_version)
);

-- A tombstone: it outlives the purge, so that a late trigger of that installation is dropped. No foreign key.
CREATE TABLE pilot_purges (
    id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    installation_id  bigint      NOT NULL,
    reason           text        NOT NULL,
    rows_deleted     jsonb       NOT NULL DEFAULT '{}',
    purged_at        timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX pilot_purges_installation ON pilot_purges (installation_id);

-- --------------------------------------------------------------------------------------- the way of a delivery

-- Every delivery that was ever taken in; its primary key is the lasting dedup. Never pruned. No foreign key:
-- a delivery may name an installation that no row knows.
CREATE TABLE webhook_deliveries (
    delivery_id      text PRIMARY KEY,
    event            text        NOT NULL,
    action           text,
    installation_id  bigint,
    repository_id    bigint,
    status           text        NOT NULL CHECK (status IN ('accepted', 'ignored', 'dead')),
    reason           text,
    redeliveries     int         NOT NULL DEFAULT 0,
    received_at      timestamptz NOT NULL,
    recorded_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_deliveries_installation ON webhook_deliveries (installation_id);

-- Deliveries that GitHub was asked to send again because no row above knows them; forgotten when GitHub forgets
-- them. `settled`: looked at, and nobody has to act on it. No foreign key, for the same reason.
CREATE TABLE recoveries (
    delivery_id  text PRIMARY KEY,
    tries        int         NOT NULL,
    settled      boolean     NOT NULL DEFAULT false,
    last_at      timestamptz NOT NULL DEFAULT now()
);

CREATE SEQUENCE work_seq;

-- What is to be done, one row per (address, need), however often it is asked for. No foreign key: work may ask
-- for what no other row knows yet.
CREATE TABLE work (
    address          text        NOT NULL,
    need             text        NOT NULL,
    ask_seq          bigint      NOT NULL DEFAULT nextval('work_seq'),
    partition        int         NOT NULL,
    installation_id  bigint      NOT NULL DEFAULT 0,
    repository_id    bigint,
    head_sha         text,
    asked_at         timestamptz NOT NULL,
    -- The first and the last ask by the database's clock: what settling is measured by.
    first_asked_at   timestamptz NOT NULL DEFAULT now(),
    last_asked_at    timestamptz NOT NULL DEFAULT now(),
    due_at           timestamptz NOT NULL DEFAULT now(),
    forced           boolean     NOT NULL DEFAULT false,
    attempts         int         NOT NULL DEFAULT 0,
    last_failure     jsonb,
    -- W3C `traceparent` of the delivery that asked last, where traces are on.
    trace            text,
    dead_at          timestamptz,
    PRIMARY KEY (address, need)
);
ALTER SEQUENCE work_seq OWNED BY work.ask_seq;
CREATE INDEX work_due ON work (partition, due_at) WHERE dead_at IS NULL;
CREATE INDEX work_installation ON work (installation_id, due_at);
CREATE INDEX work_dead ON work (dead_at) WHERE dead_at IS NOT NULL;

-- Presses of a button on a check run, until they are confirmed through the API and recorded.
CREATE TABLE pending_votes (
    delivery_id      text PRIMARY KEY,
    installation_id  bigint      NOT NULL,
    repository_id    bigint      NOT NULL,
    check_run_id     bigint      NOT NULL,
    user_id          bigint      NOT NULL,
    user_login       text        NOT NULL,
    user_is_bot      boolean     NOT NULL,
    verdict          text        NOT NULL CHECK (verdict IN ('accurate', 'wrong')),
    voted_at         timestamptz NOT NULL
);
CREATE INDEX pending_votes_repository ON pending_votes (repository_id);
CREATE INDEX pending_votes_installation ON pending_votes (installation_id);

-- Who runs which share of the actors. `epoch` grows with every change of hands and is named in every write to
-- `work`: a holder that was frozen past its lease finds out at its next write.
CREATE TABLE partitions (
    partition    int PRIMARY KEY,
    holder       text,
    epoch        bigint      NOT NULL DEFAULT 0,
    lease_until  timestamptz
);

-- Running replicas, so that each can tell its fair share of the partitions.
CREATE TABLE replicas (
    holder      text PRIMARY KEY,
    seen_until  timestamptz NOT NULL,
    draining    boolean     NOT NULL DEFAULT false,
    started_at  timestamptz NOT NULL DEFAULT now(),
    version     text        NOT NULL
);

-- `compatible_from`: the oldest code, by the schema it was written for, that may still run on this schema.
CREATE TABLE schema_version (
    version          int PRIMARY KEY,
    compatible_from  int         NOT NULL,
    applied_at       timestamptz NOT NULL DEFAULT now()
);
INSERT INTO schema_version (version, compatible_from) VALUES (1, 1);
