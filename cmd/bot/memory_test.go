package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/dream"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/media"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// TestTakenBackIsNotRecalled: a message that its sender takes back is not found
// again, and no request quotes it any more.
// Holds M7.
func TestTakenBackIsNotRecalled(t *testing.T) {
	b := openTest(t, small+"memory: {backend: fts5}\n")
	const secret = "The vault opens with HERON-99."
	me := memory.Private(b.cfg.owner())
	turn := memory.Turn{Scope: me, Event: "$1", Sender: b.cfg.owner(), At: time.Now(), Conversation: "!dm", Seq: 1, Text: secret}
	must(t, b.memory.Hear(t.Context(), turn))
	line := memory.Hit{Turn: &turn}.Line(time.UTC, nil)
	for _, m := range []history.Message{
		{Role: llm.User, EventID: "$1", Text: secret}, {Role: llm.Assistant, EventID: "re:$1", Text: "Good."},
		{Role: llm.User, EventID: "$2", Text: "And now?", Tail: "Recalled: " + line}, {Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "c", Name: "search_memory", Arguments: `{"query":"vault"}`}}},
		{Role: llm.Tool, CallID: "c", Text: "The best first:\n" + line},
	} {
		m.Room, m.At = "!dm", time.Now()
		tail := m.Tail
		must(t, b.history.Append(t.Context(), &m))
		_, err := b.db.Exec(`UPDATE message SET tail = ? WHERE id = ?`, tail, m.ID)
		must(t, err)
	}
	must(t, b.takenBack(t.Context(), "$1"))
	hits, err := b.memory.Search(t.Context(), memory.Query{Text: "vault HERON-99", Scopes: []memory.Scope{me}, Turns: true})
	if err != nil || len(hits) != 0 {
		t.Errorf("found %+v, %v", hits, err)
	}
	past, err := b.history.Load(t.Context(), "!dm")
	if err != nil || len(past) != 5 {
		t.Fatalf("%d messages, %v", len(past), err)
	}
	for _, m := range past {
		if strings.Contains(m.Text+m.Tail, "HERON-99") {
			t.Errorf("%s %s still says it: %q %q", m.Role, m.EventID, m.Text, m.Tail)
		}
	}
	if !b.memory.Recalls() {
		t.Error("fts5 is asked for, and every memory goes into the prompt")
	}
}

// TestFilesAreDeleted: with the message that is taken back, but for what another message
// has too; and when no conversation needs them any more.
func TestFilesAreDeleted(t *testing.T) {
	b := openTest(t, small)
	kept := map[string]string{}
	for _, name := range []string{"one", "both", "old", "moving", "nobody's"} {
		k, err := b.media.Keep(bytes.NewReader([]byte(name)), 1000)
		must(t, err)
		kept[name] = k.Path
	}
	there := func(name string) bool { _, err := os.Stat(b.media.File(kept[name])); return err == nil }
	say := func(event string, names ...string) {
		m := history.Message{Room: "!dm", Role: llm.User, EventID: event, Text: "look", At: time.Now()}
		for _, n := range names {
			m.Files = append(m.Files, history.File{Name: n, Path: kept[n]})
		}
		must(t, b.history.Append(t.Context(), &m))
	}
	say("$0", "old")
	_, err := b.history.StartNew(t.Context(), "!dm")
	must(t, err)
	say("$1", "one", "both")
	say("$2", "both")
	must(t, b.takenBack(t.Context(), "$1"))
	if there("one") || !there("both") {
		t.Errorf("one is there: %v; both: %v", there("one"), there("both"))
	}
	moving := func(context.Context) ([]string, error) { return []string{kept["moving"]}, nil }
	for _, step := range []struct {
		after time.Duration
		left  map[string]bool
	}{
		{0, map[string]bool{"both": true, "old": true, "moving": true, "nobody's": true}},
		{2 * time.Hour, map[string]bool{"both": true, "old": true, "moving": true}},
		{8 * 24 * time.Hour, map[string]bool{"both": true, "moving": true}},
	} {
		_, err := b.sweep(t.Context(), moving, time.Now().Add(step.after))
		must(t, err)
		for name := range kept {
			if there(name) != step.left[name] {
				t.Errorf("after %v %s is there: %v", step.after, name, there(name))
			}
		}
	}
	if media.Stem(kept["old"]) == media.Stem(kept["both"]) {
		t.Error("two contents have one name")
	}
}

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
