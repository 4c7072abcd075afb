package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/dream"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

func TestHarvestConfig(t *testing.T) {
	for text, want := range map[string]string{
		"harvest: {messages: 0}\n":              "harvest.messages: ",
		"harvest: {idle: 5s}\n":                 "harvest.idle: ",
		"harvest: {enabled: maybe}\n":           "harvest.enabled: ",
		"harvest: {enabled: false, idle: 2h}\n": "",
	} {
		_, err := parse(t, "/x", small+text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestHarvestOfTheWholeBot: what is told in a direct chat and in a room is learned by itself, each
// for those it was said to, and stands in their files; what is compacted or left behind by !new, too.
func TestHarvestOfTheWholeBot(t *testing.T) {
	dir := t.TempDir()
	config := strings.Replace(strings.Replace(small, "http://127.0.0.1:1/v1", "rehearsal:", 1), "model: m", "model: rehearsal", 1)
	cfg, err := parse(t, dir, config)
	if err != nil {
		t.Fatal(err)
	}
	b, err := openBot(t.Context(), cfg, slog.New(slog.DiscardHandler), true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	say := func(room, text string, shared bool) {
		m := history.Message{Room: history.Talk(room), Role: llm.User, EventID: fmt.Sprintf("$%s%d", room, time.Now().UnixNano()), Sender: cfg.owner(), Text: text, At: time.Now(),
			Header: b.prompt.Header(time.Now(), cfg.owner(), shared)}
		m.Label = trust.Label{Integrity: trust.Owner, Readers: trust.Place{Room: room, Person: cfg.owner(), Private: !shared}.Readers()}
		if err := b.history.Append(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	say("!dm", "By the way. My canary is called Tweety.", false)
	if _, err := b.history.StartNew(t.Context(), "!dm"); err != nil {
		t.Fatal(err)
	}
	say("!dm", "I prefer green tea! The password is hunter2. My password is hunter3.", false)
	say("!dm", "rehearse: error 500. I live in Kiel.", false)
	say("!group", "Our meeting is on Monday. What do you think?", true)
	d, err := b.openDreamer()
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Dream(t.Context(), dream.Options{Phases: []dream.Phase{dream.Harvest}, Now: true})
	if err != nil || r.Harvested == nil || r.Harvested.Added != 4 || r.Harvested.Messages != 4 || r.Harvested.Requests != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	file, err := os.ReadFile(filepath.Join(cfg.Data, "MEMORIES.txt"))
	if err != nil || !strings.Contains(string(file), "My canary is called Tweety") || !strings.Contains(string(file), "I prefer green tea") || strings.Contains(string(file), "hunter") ||
		strings.Contains(string(file), "meeting") {
		t.Errorf("%s, %v", file, err)
	}
	room, err := b.memory.Entries(t.Context(), memory.Room("!group"))
	if err != nil || len(room) != 1 || room[0].Text != "owner said: Our meeting is on Monday" {
		t.Errorf("%+v, %v", room, err)
	}
}

// TestHarvestInARun: it runs beside the sessions, begins when a conversation is left behind, and
// ends with them.
func TestHarvestInARun(t *testing.T) {
	config := strings.Replace(strings.Replace(small, "http://127.0.0.1:1/v1", "rehearsal:", 1), "model: m", "model: rehearsal", 1)
	cfg, err := parse(t, t.TempDir(), config)
	if err != nil {
		t.Fatal(err)
	}
	b, err := openBot(t.Context(), cfg, slog.New(slog.DiscardHandler), true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	screen := newTerminal(cfg)
	screen.out = &strings.Builder{}
	sessions := b.sessions(screen, nil)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- sessions.Run(ctx) }() // go: waited for below
	go func() { ended <- b.runHarvest(ctx) }() // go: waited for below
	lines := make(chan line, 3)
	lines <- line{text: "My boat is called Morning Star."}
	lines <- line{text: "!new"}
	talk, hush := context.WithCancel(ctx)
	go func() { ended <- screen.talk(talk, &typed{lines: lines}, sessions, cfg.owner()) }() // go: waited for below
	var got []memory.Entry
	for end := time.Now().Add(time.Minute); len(got) == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got, err = b.memory.Entries(ctx, memory.Private(cfg.owner())); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 1 || got[0].Text != "My boat is called Morning Star" || got[0].Source != memory.Harvest {
		t.Errorf("%+v", got)
	}
	hush()
	stop()
	for range 3 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
