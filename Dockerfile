# An arena in a container: `docker build -t arena .`, then see examples/deploy/compose.yaml and docs/operations.md.

FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
# The registry and what is compiled stay between builds; the binary is taken out of them.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked --package arena-cli && cp target/release/arena /usr/local/bin/arena

FROM debian:bookworm-slim
# What `tls://` to NATS is checked against.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/arena /usr/local/bin/arena
# Secrets and, without a database, the store. Readable by nobody else.
RUN useradd --system --uid 10001 --no-create-home arena && install -d -m 700 -o arena -g arena /var/lib/arena
USER arena
VOLUME /var/lib/arena
EXPOSE 3001
# Whether the process answers; the store has no part in it, so a slow database doesn't have the container restarted.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/3001 && printf 'GET /health HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["arena"]
# Others than this machine are listened to, so players have to prove who they are.
CMD ["serve", "--listen", "0.0.0.0:3001", "--auth", "--data", "/var/lib/arena", "--log-format", "json"]
