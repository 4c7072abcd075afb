// Package homeserver runs a throw-away Matrix homeserver (Dendrite with SQLite)
// on the loopback interface, for `bot try` and for the end-to-end tests.
//
// It is a real server for unreal data: no federation, no rate limits, cheap
// password hashes. Nobody should keep anything on it that they care about.
package homeserver
