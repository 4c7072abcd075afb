package main

import (
	"fmt"
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

// TestHarvestOfTheWholeBot: what is told in a direct chat and in a room is learned by itself, each
// for those it was said to, and stands in their files; what is compacted or left behind by !new, too.
func TestHarvestOfTheWholeBot(t *testing.T) {
	b := openTest(t, rehearsing)
	say := func(room, text string, shared bool) {
		m := history.Message{Room: history.Talk(room), Role: llm.User, EventID: fmt.Sprintf("$%s%d", room, time.Now().UnixNano()), Sender: b.cfg.owner(), Text: text, At: time.Now(),
			Header: b.prompt.Header(time.Now(), b.cfg.owner(), shared)}
		m.Label = trust.Label{Integrity: trust.Owner, Readers: trust.Place{Room: room, Person: b.cfg.owner(), Private: !shared}.Readers()}
		must(t, b.history.Append(t.Context(), &m))
	}
	say("!dm", "By the way. My canary is called Tweety.", false)
	_, err := b.history.StartNew(t.Context(), "!dm")
	must(t, err)
	say("!dm", "I prefer green tea! The password is hunter2. My password is hunter3.", false)
	say("!dm", "rehearse: error 500. I live in Kiel.", false)
	say("!group", "Our meeting is on Monday. What do you think?", true)
	d, err := b.openDreamer()
	must(t, err)
	r, err := d.Dream(t.Context(), dream.Options{Phases: []dream.Phase{dream.Harvest}, Now: true})
	if err != nil || r.Harvested == nil || r.Harvested.Added != 4 || r.Harvested.Messages != 4 || r.Harvested.Requests != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	file, err := os.ReadFile(filepath.Join(b.cfg.Data, "MEMORIES.txt"))
	if err != nil || !strings.Contains(string(file), "My canary is called Tweety") || !strings.Contains(string(file), "I prefer green tea") || strings.Contains(string(file), "hunter") ||
		strings.Contains(string(file), "meeting") {
		t.Errorf("%s, %v", file, err)
	}
	room, err := b.memory.Entries(t.Context(), memory.Room("!group"))
	if err != nil || len(room) != 1 || room[0].Text != "owner said: Our meeting is on Monday" {
		t.Errorf("%+v, %v", room, err)
	}
}
