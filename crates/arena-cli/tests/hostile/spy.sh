#!/bin/sh
# An agent that searches all files around it for the lines of needles.txt beside it, which are written backwards. When it finds
# one, it crashes, which the result shows.
folder=$(dirname "$0")
look() {
    while read -r needle; do
        needle=$(printf '%s\n' "$needle" | rev)
        if found=$(grep -rlsF -e "$needle" "$folder" "$folder/.." "$PWD" /tmp /etc /var /home /root /proc/self/environ); then
            echo "found it in $found" >&2
            exit 3
        fi
    done < "$folder/needles.txt"
}
while read -r line; do
    look
    case $line in
    *'"ping"'*) echo '{"pong": "pong"}' ;;
    *'"set_agent_id"'*)
        me=$(printf '%s' "$line" | sed 's/.*"set_agent_id" *: *"\([^"]*\)".*/\1/')
        printf '{"agent_id": "%s"}\n' "$me"
        ;;
    *'"stop"'*) exit 0 ;;
    *) printf '{"agent_id": "%s", "actions": []}\n' "$me" ;;
    esac
done
