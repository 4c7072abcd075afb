// Package homeserver runs a throw-away Matrix homeserver (Dendrite with SQLite)
// on the loopback interface, for `make try` and for the end-to-end tests.
//
// It is a real server for unreal data: no federation, cheap password hashes.
// Nobody should keep anything on it that they care about. Its rate limits are
// those of the homeserver in docker-compose.yml, which shares dendrite.yaml.
package homeserver
