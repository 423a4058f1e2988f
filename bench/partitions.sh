#!/bin/sh
# Compares one table of messages with a table in 60 partitions. Needs psql and an empty database, which the variables
# PGHOST, PGDATABASE and so on name. See docs/decisions/0096.
set -eu

ask() { psql -X -q -A -t -v ON_ERROR_STOP=1 -c "$1"; }

timed() {
    began=$(date +%s%N)
    ask "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off; $2" > /dev/null
    echo "$1: $((($(date +%s%N) - began) / 1000000)) ms"
}

size() { ask "SELECT '$1: ' || (sum(pg_total_relation_size(t)) / 1000000)::int || ' MB' FROM $2"; }

columns="session bigint NOT NULL, channel smallint NOT NULL, idx bigint NOT NULL, at bigint NOT NULL, sender text NOT NULL,
    content text NOT NULL, no bigint, PRIMARY KEY (session, channel, idx)"
ask "CREATE TABLE one ($columns); CREATE TABLE parts ($columns) PARTITION BY RANGE (session)"
for i in $(seq 0 59); do
    ask "CREATE TABLE parts_$i PARTITION OF parts FOR VALUES FROM ($((i * 2000))) TO ($(((i + 1) * 2000)))"
done

# Ten messages of each session.
fill() {
    echo "INSERT INTO $1 SELECT s, 1, i, 0, 'p', repeat('x', 300), i FROM generate_series($2, $3) s, generate_series(1, 10) i"
}

# Batches of 64 messages in 400 recent sessions, inserted from lists as the arena does.
batches() {
    echo "DO \$\$ BEGIN FOR k IN 1..500 LOOP
        INSERT INTO $1 SELECT * FROM unnest(
            ARRAY(SELECT 100000 + (j * 37 + k) % 400 FROM generate_series(1, 64) j), ARRAY(SELECT 1::int2 FROM generate_series(1, 64)),
            ARRAY(SELECT $2 + k * 64 + j FROM generate_series(1, 64) j), array_fill(0::int8, ARRAY[64]),
            array_fill('p'::text, ARRAY[64]), array_fill(repeat('y', 300), ARRAY[64]), array_fill(0::int8, ARRAY[64]));
        END LOOP; END \$\$"
}

pages() {
    echo "DO \$\$ DECLARE found record; BEGIN FOR k IN 1..20000 LOOP
        SELECT * INTO found FROM $1 WHERE session = (k::int8 * 7919) % 100000 AND channel = 1 AND idx >= 1 ORDER BY idx LIMIT 100;
        END LOOP; END \$\$"
}

for table in one parts; do timed "$table, a million messages" "$(fill $table 0 99999)"; done
for round in 1 2 3; do
    for table in one parts; do
        timed "$table, 500 batches" "$(batches $table $((round * 1000000)))"
        timed "$table, 20000 pages" "$(pages $table)"
    done
done
for table in one parts; do
    timed "$table, removal of 80000 sessions one by one" \
        "DO \$\$ BEGIN FOR k IN 0..79999 LOOP DELETE FROM $table WHERE session = k; END LOOP; END \$\$"
done
ask "VACUUM one"
timed "parts, removal of 40 partitions" "$(for i in $(seq 0 39); do echo "DROP TABLE parts_$i;"; done)"
size "one, after the removal" "(VALUES ('one'::regclass)) v (t)"
size "parts, after the removal" "(SELECT inhrelid FROM pg_inherits WHERE inhparent = 'parts'::regclass) v (t)"
timed "one, 800000 messages in its place" "$(fill one 200000 279999)"
size "one, filled again" "(VALUES ('one'::regclass)) v (t)"
