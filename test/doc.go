// Package test proves what Reverie promises with the real parts: the built
// binary, a real homeserver, and both sides of a room encrypted.
package test
