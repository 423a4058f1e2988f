# The image of PostgreSQL runs this script when it creates the database. Either database may become the other's standby.
sh /usr/local/bin/standby.sh allow
for address in 10.0.0.11 10.0.0.12; do
    echo "host replication standby $address/32 scram-sha-256" >> "$PGDATA/pg_hba.conf"
done
