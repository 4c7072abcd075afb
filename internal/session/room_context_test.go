package session

import (
	"strings"
	"testing"
	"time"
)

// TestRoomContext: owners say what a room is about, everybody can look at it, and the model
// gets it with every message of that room and of no other.
// Holds M66.
func TestRoomContext(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	const fair = "This room plans the school's summer fair.\nx = 3 stalls are booked."
	for i, c := range []struct{ who, say, want, not string }{
		{friend, "!config", "| context | not set | as everywhere at first | a text of up to 1000 characters |", ""},
		{friend, "!config context This room is mine.", "Only my owners", ""},
		{owner, "!config context " + strings.Repeat("é", maxContext+1), "`context` cannot be `éééé", ""},
		{owner, "!config context", "It is not set (as everywhere at first). It can be a text of up to 1000 characters.", ""},
		{owner, "!config Context = " + fair, "`context` is `This room plans the school's summer fair", ""},
		{friend, "!config", "| context | This room plans the school's", "not set"},
		{friend, "!config context", "`This room plans the school's summer fair. x = 3 stalls are booked.` (" + owner, ""},
	} {
		got := w.hears(t, c.who, "!group", "$"+string(rune('a'+i)), c.say)
		if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s says %.60s, and hears %q, want %q and not %q", c.who, c.say, got, c.want, c.not)
		}
	}
	told := func(room, id string) string {
		t.Helper()
		w.hears(t, friend, room, id, "hello")
		return sent(t, w.lastAsked())[0].Content
	}
	wants(t, told("!group", "$1"), "# About This Room\n"+fair)
	lacks(t, told("!other", "$2"), "summer fair")
	w.stop()
	w = newWorld(t, dir)
	wants(t, told("!group", "$3"), fair)
	wants(t, w.hears(t, owner, "!group", "$4", "!config context default"), "`context` is as everywhere at first again: not set.")
	lacks(t, told("!group", "$5"), "About This Room")
}

// TestRoomContextIsPlainText: control characters do not reach the prompt, and no other room's text does.
func TestRoomContextIsPlainText(t *testing.T) {
	w := newWorld(t, t.TempDir())
	s := Settings{DB: w.cfg.DB}
	must(t, s.Set(t.Context(), "!a", SettingContext, " One\x00\x1b[31m\r\ntwo\tthree \u202e", owner, time.Now()))
	if got, err := s.Get(t.Context(), "!a", SettingContext); err != nil || got != "One[31m\ntwo\tthree" {
		t.Errorf("%q, %v", got, err)
	}
	if all, err := s.All(t.Context(), "!a"); err != nil || all[SettingContext] != "One[31m\ntwo\tthree" {
		t.Errorf("%q, %v", all, err)
	}
	if got, err := s.Get(t.Context(), "!b", SettingContext); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Set(t.Context(), "!a", SettingContext, strings.Repeat("x", maxContext+1), owner, time.Now()); err == nil {
		t.Error("a text that is too long is stored")
	}
}
