// Package homeserver runs a throw-away Matrix homeserver (Dendrite with SQLite) on the loopback
// interface, for `make try` and the end-to-end tests.
//
// It is a real server for test data only: no federation, weak password hashes. Its rate limits are
// those of the homeserver in docker-compose.yml, which shares dendrite.yaml.
package homeserver
