package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/matrix/homeserver/homeservertest"
)

// TestLiveInit: with what `bot init` writes the bot starts on a real homeserver, and the doctor
// finds nothing to mend.
func TestLiveInit(t *testing.T) {
	home := homeservertest.Start(t)
	_, err := home.Register(t.Context(), "reverie", "a long enough password")
	must(t, err)
	config := filepath.Join(t.TempDir(), "new", "config.yaml")
	bot := startLive(t, 200, "init", "--config", config)
	for _, l := range []struct{ sees, types string }{
		{"homeserver, such as", home.URL}, {"own account", "@reverie:" + home.Name}, {"You may do everything", "@me:" + home.Name},
		{"model server", rehearsalURL}, {"holds the key", ""}, {"The model, by its name", "rehearsal"}, {"The time zone", "Europe/Berlin"},
	} {
		bot.sees(l.sees)
		bot.typed(l.types + "\r")
	}
	bot.sees("Wrote " + config)
	bot.ends()
	t.Setenv("MATRIX_PASSWORD", "a long enough password")
	r := &running{t: t, args: []string{"run", "--config", config}}
	r.start()
	r.until("bot run does not start", func() bool { return r.wrote("msg=ready") })
	if code, text := runBot(t, "", "doctor", "--config", config); code != 0 || !strings.Contains(text, "is cross-signed") {
		t.Errorf("doctor: exit %d\n%s", code, text)
	}
}

// TestLiveInitInterrupted: Ctrl-C ends it at once, and nothing is written.
func TestLiveInitInterrupted(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	bot := startLive(t, 200, "init", "--config", config)
	bot.sees("homeserver, such as")
	bot.typed("half of\x03")
	if err := bot.left(); err == nil {
		t.Error("it ended with success")
	}
	if screen := bot.look(); !strings.Contains(screen, "nothing was written") {
		t.Error(screen)
	}
	if _, err := os.Lstat(config); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
}
