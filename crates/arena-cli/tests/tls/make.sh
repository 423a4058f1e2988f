#!/bin/sh
# Creates the certificates of the tests: an authority, and a server certificate for 127.0.0.1. They are valid from 2020 to 2120.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work"
touch index.txt
cat > ca.conf <<CONF
[ca]
default_ca = test
[test]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
default_startdate = 20200101000000Z
default_enddate = 21200101000000Z
[any]
commonName = supplied
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
[server]
basicConstraints = critical,CA:FALSE
subjectAltName = IP:127.0.0.1
CONF
request() {
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$2.key" -out "$2.csr"
}
sign() {
    openssl ca -batch -notext -config ca.conf "$@"
}
request "Arena test authority" ca
sign -selfsign -keyfile ca.key -in ca.csr -extensions authority -out ca.pem
request "Arena test server" server
sign -keyfile ca.key -cert ca.pem -in server.csr -extensions server -out server.pem
# Without its key, the authority can't sign anything else.
mv ca.pem server.pem server.key "$here"
rm -r "$work"
