# An arena in a container: `docker build -t arena .`, then see examples/deploy/compose.yaml and docs/hosting.md.

FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
# The registry and the compiled crates stay in the cache between builds; the binary is copied out of it.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked --package arena-cli && cp target/dist/arena /usr/local/bin/arena

FROM debian:bookworm-slim
# Root certificates for `tls://` connections to NATS, OpenSSL for the health check, and Python for agents of tournaments.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates openssl python3 && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/arena /usr/local/bin/arena
COPY --chmod=755 examples/deploy/health.sh /usr/local/bin/arena-health
# The folder for secrets and, without a database, the store. Several nodes share the folder /srv/arena. Only the arena's
# user can read them.
RUN useradd --system --uid 10001 --no-create-home arena && install -d -m 700 -o arena -g arena /var/lib/arena /srv/arena
USER arena
VOLUME /var/lib/arena
EXPOSE 3001
# Checks that the process answers, without the store, so that a slow database doesn't restart the container.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["arena-health", "/health"]
ENTRYPOINT ["arena"]
# The server listens to other machines, so players must authenticate.
CMD ["serve", "--listen", "0.0.0.0:3001", "--auth", "--data", "/var/lib/arena", "--log-format", "json"]
