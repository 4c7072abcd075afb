package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"reverie/internal/dream"
	"reverie/internal/memory"
)

// TestTellDream: what was dreamt is told to the owner alone, in the direct chat where they
// wrote last, without what is others', and only if it is wanted.
func TestTellDream(t *testing.T) {
	cfg, err := parse(t, t.TempDir(), small+"dreaming: {notice: true}\n")
	if err != nil {
		t.Fatal(err)
	}
	b, err := openBot(t.Context(), cfg, slog.New(slog.DiscardHandler), true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	owner, guest := cfg.owner(), "@guest:example.org"
	question := func(scope memory.Scope, text string) dream.Question {
		return dream.Question{Scope: scope, First: "mem_1", FirstText: text, Second: "mem_2", SecondText: text + " now", Why: "both are of the same time"}
	}
	r := dream.Report{Run: "dream_1", State: dream.AppliedState, Questions: []dream.Question{question(memory.Private(owner), "tea"), question(memory.Private(guest), "gin"), question(memory.Shared, "bread")},
		Merged: []dream.Change{{}}}
	out := &board{said: map[string]string{}}
	tell := b.tellDream(out)
	if tell(t.Context(), r); len(out.said) != 0 {
		t.Errorf("told nobody knows whom: %q", out.all())
	}
	for room, who := range map[string]string{"!old": owner, "!own": owner, "!guest": guest, "!group": owner} {
		if _, err := b.db.Exec(`INSERT OR IGNORE INTO room (id) VALUES (?)`, room); err != nil {
			t.Fatal(err)
		}
		heard := map[string]int64{"!old": 1, "!own": 2, "!guest": 3, "!group": 4}[room]
		if _, err := b.db.Exec(`INSERT INTO session (room, person, private, heard_at) VALUES (?, ?, ?, ?)`, room, who, room != "!group", time.Now().Unix()+heard); err != nil {
			t.Fatal(err)
		}
	}
	tell(t.Context(), r)
	got := strings.Join(out.all(), "\n")
	if len(out.said) != 1 || !strings.HasPrefix(got, "!own: ") || !strings.Contains(got, "tea now") || !strings.Contains(got, "bread now") || strings.Contains(got, "gin") {
		t.Errorf("%q", out.all())
	}
	if tell(t.Context(), dream.Report{Run: "dream_2", State: dream.Nothing}); len(out.said) != 1 {
		t.Errorf("told of nothing: %q", out.all())
	}
	cfg.Dreaming.Notice = false
	if b.tellDream(out) != nil {
		t.Error("told though it is not wanted")
	}
}
