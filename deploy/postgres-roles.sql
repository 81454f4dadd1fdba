-- The two roles of Graft's database, for psql as its owner or a superuser, in the database that Graft is to use:
--   GRAFT_OWNER_PASSWORD=… GRAFT_DAEMON_PASSWORD=… psql --file deploy/postgres-roles.sql "$ADMIN_URL"
-- Again it changes the passwords, and nothing else. `deploy/compose.yaml` has it run when the database is made.
--
-- The owner is for `graft migrate` alone. The daemon reads and writes rows: it creates, drops, alters and empties
-- nothing, so whoever has its password cannot plant a trigger or take the tables away.
\set ON_ERROR_STOP on
\getenv owner_password GRAFT_OWNER_PASSWORD
\getenv daemon_password GRAFT_DAEMON_PASSWORD
\if :{?owner} \else \set owner graft_owner \endif
\if :{?daemon} \else \set daemon graft \endif

BEGIN;

SELECT format('CREATE ROLE %I', name)
  FROM (VALUES (:'owner'), (:'daemon')) AS wanted (name)
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
ALTER ROLE :"owner" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD :'owner_password';
ALTER ROLE :"daemon" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD :'daemon_password';

-- Nobody else comes in; temporary tables are not needed either.
REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME" TO :"owner", :"daemon";
REVOKE ALL ON SCHEMA public FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM :"daemon";
GRANT USAGE, CREATE ON SCHEMA public TO :"owner";
GRANT USAGE ON SCHEMA public TO :"daemon";

-- What `graft migrate` will make, and what an earlier one has made. Tables that another role owns have to be given
-- to the owner first: REASSIGN OWNED BY old_role TO graft_owner.
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"daemon";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA public GRANT USAGE ON SEQUENCES TO :"daemon";
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO :"daemon";
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO :"daemon";

COMMIT;
