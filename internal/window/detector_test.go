package window

import (
	"strings"
	"testing"

	"reverie/internal/llm/discover"
)

func TestPlaceOf(t *testing.T) {
	for url, want := range map[string]string{
		"http://127.0.0.1:11434/v1":         "127.0.0.1 is this machine",
		"http://127.8.8.8/v1":               "127.8.8.8 is this machine",
		"http://[::1]:8080/v1":              "::1 is this machine",
		"http://[::ffff:127.0.0.1]:8080/v1": "::ffff:127.0.0.1 is this machine",
		"http://0.0.0.0:8080/v1":            "0.0.0.0 is this machine",
		"http://LocalHost:8080/v1":          "LocalHost is this machine",
		"http://192.168.1.8:8080/v1":        "192.168.1.8 is another machine; if it is this one, write localhost in its address",
		"http://localhost.evil.example/v1":  "localhost.evil.example is another machine; if it is this one, write localhost in its address",
		"http://127.0.0.1.evil.example/v1":  "127.0.0.1.evil.example is another machine; if it is this one, write localhost in its address",
		"":                                  "there is no model for chat",
		discover.Rehearsal:                  "the stand-in model is a part of this program and needs no GPU",
	} {
		if here, why := isLocalServer(url); why != want || here != strings.HasSuffix(want, "is this machine") {
			t.Errorf("%s: here %v, %s", url, here, why)
		}
	}
}
