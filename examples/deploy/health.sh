#!/bin/bash
# The health check of a container: succeeds if the arena at 127.0.0.1 answers the path with status 200. The check
# follows the server's settings: it uses TLS if the server asks for it.
#
#   health.sh PATH [PORT]     PATH is /health or /ready; the default port is 3001

port=${2:-3001}
# `<<<` adds the last line break. It also lets `cat` write the request at once: a server with TLS answers the first bytes
# of another protocol, and closes the connection.
request="GET $1 HTTP/1.1"$'\r\nHost: localhost\r\nConnection: close\r\n\r'

exec 3<>"/dev/tcp/127.0.0.1/$port" || exit 1
cat <<<"$request" >&3
answer=$(cat <&3)
if [[ $answer == *TLS_REQUIRED* ]]; then
    # The certificate is for the public name, so its name isn't checked here.
    answer=$(openssl s_client -quiet -connect "127.0.0.1:$port" <<<"$request" 2>/dev/null)
fi
[[ $answer == "HTTP/1.1 200 "* ]]
