#!/bin/bash
# The health check of a container: succeeds if the arena at 127.0.0.1 answers the path with status 200. The check
# follows the server's settings: it uses TLS if the server asks for it.
#
#   health.sh PATH [PORT]     PATH is /health or /ready; the default port is 3001

port=${2:-3001}

request() {
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$1"
}

exec 3<>"/dev/tcp/127.0.0.1/$port" || exit 1
request "$1" >&3
answer=$(cat <&3)
if [[ $answer == *TLS_REQUIRED* ]]; then
    # The certificate is for the public name, so its name isn't checked here.
    answer=$(request "$1" | openssl s_client -quiet -connect "127.0.0.1:$port" 2>/dev/null)
fi
[[ $answer == "HTTP/1.1 200 "* ]]
