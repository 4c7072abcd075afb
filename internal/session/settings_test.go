package session

import (
	"testing"
	"time"
)

// Holds M59.
func TestSettings(t *testing.T) {
	w := newWorld(t, t.TempDir())
	s := Settings{DB: w.cfg.DB}
	ctx := t.Context()
	get := func(room, want string) {
		t.Helper()
		if v, err := s.Get(ctx, room, SettingThreads); err != nil || v != want {
			t.Errorf("%s = %q, %v, want %q", room, v, err, want)
		}
		if all, err := s.All(ctx, room); err != nil || all[SettingThreads] != want || all[SettingMention] != "needed" {
			t.Errorf("%s has %v, %v, want %q", room, all, err, want)
		}
	}
	get("!a", "auto")
	must(t, s.Set(ctx, "!a", SettingThreads, "always", "@me:x", time.Now()))
	get("!a", "always")
	get("!b", "auto")
	if err := s.Set(ctx, "!a", SettingThreads, "sometimes", "@me:x", time.Now()); err == nil {
		t.Error("a value that there is not was stored")
	}
	if err := s.Set(ctx, "!a", "colour", "blue", "@me:x", time.Now()); err == nil {
		t.Error("a setting that there is not was stored")
	}
	w.exec(t, `UPDATE room_setting SET value = 'of an older release' WHERE room = '!a'`)
	get("!a", "auto")
}
