package main

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/media"
)

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
