# syntax=docker/dockerfile:1

# The bot: one static file in an empty image, run by a user who is not root.
#   docker build -t reverie .
# To have the sentence encoder's weights in it, run `make weights` before.
# The homeserver of docker-compose.yml comes from this file too (target homeserver).

FROM golang:1.26 AS source
ENV CGO_ENABLED=0
WORKDIR /src

FROM source AS build
ENV GOFLAGS="-buildvcs=false -tags=goolm"
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/bot ./cmd/bot
RUN mkdir -m 0700 /out/data

# Dendrite from the pinned module of test/homeserver, for docker-compose.yml.
FROM source AS build-homeserver
ENV GOFLAGS="-buildvcs=false -mod=readonly"
COPY test/homeserver/go.mod test/homeserver/go.sum ./
RUN go build -trimpath -ldflags "-s -w" -o /out/ \
      github.com/element-hq/dendrite/cmd/dendrite \
      github.com/element-hq/dendrite/cmd/generate-keys \
      github.com/element-hq/dendrite/cmd/create-account
RUN mkdir -m 0700 /out/data

FROM alpine:3.22 AS homeserver
COPY --from=build-homeserver /out/dendrite /out/generate-keys /out/create-account /usr/local/bin/
COPY --from=build-homeserver --chown=65532:65532 /out/data /data
COPY <<'EOF' /etc/dendrite.yaml
version: 2
global:
  server_name: "@SERVER_NAME@"
  private_key: /data/matrix_key.pem
  disable_federation: true
  presence: {enable_inbound: false, enable_outbound: false}
  jetstream: {storage_path: /data/jetstream}
  report_stats: {enabled: false}
client_api:
  registration_disabled: true
  registration_shared_secret: "@SECRET@"
federation_api:
  database: {connection_string: "file:/data/federationapi.db"}
  key_perspectives: []
key_server:
  database: {connection_string: "file:/data/keyserver.db"}
media_api:
  database: {connection_string: "file:/data/mediaapi.db"}
  base_path: /data/media
room_server:
  default_room_version: "10"
  database: {connection_string: "file:/data/roomserver.db"}
sync_api:
  database: {connection_string: "file:/data/syncapi.db"}
  search: {enabled: false}
user_api:
  account_database: {connection_string: "file:/data/userapi.db"}
relay_api:
  database: {connection_string: "file:/data/relayapi.db"}
mscs:
  database: {connection_string: "file:/data/mscs.db"}
logging:
  - {type: std, level: warn}
EOF
COPY --chmod=0755 <<'EOF' /usr/local/bin/start
#!/bin/sh
# The signing key and the registration secret are made once and kept in /data.
set -eu
umask 077
cd /data
[ -s matrix_key.pem ] || generate-keys -private-key matrix_key.pem
[ -s registration_secret ] || head -c 32 /dev/urandom | sha256sum | cut -c 1-64 > registration_secret
sed -e "s/@SERVER_NAME@/${SERVER_NAME:-localhost}/" -e "s/@SECRET@/$(cat registration_secret)/" \
  /etc/dendrite.yaml > dendrite.yaml
exec dendrite -config /data/dendrite.yaml -http-bind-address :8008
EOF
USER 65532:65532
VOLUME /data
EXPOSE 8008
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8008/_matrix/client/versions"]
ENTRYPOINT ["/usr/local/bin/start"]

# Last, so that it is what a plain `docker build` makes. Time zones are in the binary.
FROM scratch AS bot
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/bot /bot
COPY --from=build --chown=65532:65532 /out/data /data
ENV REVERIE_CONFIG=/data/config.yaml HOME=/data
USER 65532:65532
WORKDIR /data
VOLUME /data
ENTRYPOINT ["/bot"]
CMD ["run"]
