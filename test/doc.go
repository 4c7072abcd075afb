// Package test tests Reverie end to end: with the built binary, a real homeserver, and encrypted
// rooms.
package test
