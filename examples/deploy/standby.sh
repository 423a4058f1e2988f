#!/bin/sh
# A synchronous standby of a PostgreSQL server, by PostgreSQL's own programs. See docs/postgres.md.
#
#   standby.sh allow             at the primary: creates the role `standby`, with the password STANDBY_PASSWORD
#   standby.sh copy HOST FOLDER  at the standby, as the user postgres: copies the primary into an empty data folder
#   standby.sh require           at the primary, while the standby runs: from now on, each commit waits for it
#   standby.sh forget            at the primary, when the standby is lost: commits don't wait for it, until `copy` and
#                                `require` follow
#   standby.sh promote           at the standby, after the primary was stopped for good: makes it the primary
#
# The programs take the server and its superuser from PGHOST, PGPORT, PGUSER and PGPASSWORD. Before `copy`, add this
# line to the primary's pg_hba.conf, with the standby's address, and reload the primary:
#
#   host replication standby 10.0.0.12/32 scram-sha-256
set -eu

query() {
    psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname postgres "$@"
}

case "$1" in
allow)
    query --set password="$STANDBY_PASSWORD" <<'SQL'
CREATE ROLE standby LOGIN REPLICATION PASSWORD :'password';
SQL
    ;;
copy)
    # The primary keeps its log for the standby (`--slot`), and knows the standby by its name.
    PGPASSWORD=$STANDBY_PASSWORD pg_basebackup --dbname "host=$2 user=standby application_name=standby" \
        --pgdata "$3" --write-recovery-conf --create-slot --slot standby --checkpoint fast
    ;;
require)
    query <<'SQL'
ALTER SYSTEM SET synchronous_standby_names = 'standby';
SELECT pg_reload_conf();
SQL
    ;;
forget)
    # The slot of a lost standby would keep the log for it, and stand in the way of another copy.
    query <<'SQL'
ALTER SYSTEM RESET synchronous_standby_names;
SELECT pg_reload_conf();
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'standby';
SQL
    ;;
promote)
    # The copy may have the setting of `require`. Without a standby of its own, the new primary would wait for ever.
    query <<'SQL'
ALTER SYSTEM RESET synchronous_standby_names;
SELECT pg_reload_conf();
SELECT pg_promote();
SQL
    ;;
esac
