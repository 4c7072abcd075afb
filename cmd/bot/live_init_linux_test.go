package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/matrixtest"
)

// TestLiveInit: what `bot init` writes, with a real homeserver, is good: the doctor finds
// nothing to mend, and `bot run` needs no password.
func TestLiveInit(t *testing.T) {
	t.Setenv("MATRIX_PASSWORD", "")
	_ = os.Unsetenv("MATRIX_PASSWORD")
	home := homeservertest.Start(t)
	for _, name := range []string{"reverie", "me"} {
		_, err := home.Register(t.Context(), name, "the password of "+name)
		must(t, err)
	}
	folder := filepath.Join(t.TempDir(), "new")
	config := filepath.Join(folder, "config.yaml")
	bot := startLive(t, 200, "init", "--config", config)
	for _, l := range []struct{ sees, types string }{
		{"\nHomeserver:", home.URL}, {"\nBot's account:", "@reverie:" + home.Name},
		{"\nPassword:", "the password of me"}, {"does not accept", "the password of reverie"},
		{"\nOwner:", "@me:" + home.Name}, {"\nModel server", rehearsalURL}, {"\nModel [", ""}, {"\nTime zone [", "Europe/Berlin"},
		{"Enter writes " + config + " in a new folder", ""},
	} {
		if strings.Contains(l.types, "the password of") {
			bot.hides(l.sees)
		} else {
			bot.sees(l.sees)
		}
		bot.typed(l.types + "\r")
	}
	bot.sees("Wrote " + config)
	bot.sees("is logged in, and needs no password any more")
	bot.sees("Copy " + filepath.Join(folder, "data/matrix/recovery.key"))
	bot.ends()
	if _, err := os.Stat(filepath.Join(folder, "data/matrix/recovery.key")); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(config); err != nil || strings.Contains(string(text)+bot.look(), "the password of reverie") {
		t.Errorf("%v: the password is shown:\n%s", err, bot.look())
	}
	if code, text := runBot(t, "", "doctor", "--config", config); code != 0 || !strings.Contains(text, "is cross-signed") {
		t.Errorf("doctor: exit %d\n%s", code, text)
	}
	r := &running{t: t, args: []string{"run", "--config", config}}
	r.start()
	r.until("bot run does not start", func() bool { return r.wrote("msg=ready") })
}

// TestLiveInitInterrupted: Ctrl-C ends it at once, also where nothing is shown of what is
// typed, and nothing is written.
func TestLiveInitInterrupted(t *testing.T) {
	s := matrixtest.Start(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	bot := startLive(t, 200, "init", "--config", config)
	bot.sees("\nHomeserver:")
	bot.typed(s.URL + "\r")
	bot.sees("\nBot's account:")
	bot.typed("@reverie:matrix.test\r")
	bot.hides("\nPassword:")
	bot.typed("half of\x03")
	if err := bot.left(); err == nil {
		t.Error("it ended with success")
	}
	if screen := bot.look(); !strings.Contains(screen, "nothing was written") || strings.Contains(screen, "half of") {
		t.Error(screen)
	}
	if _, err := os.Lstat(config); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
}
