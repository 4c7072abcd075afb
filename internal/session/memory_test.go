package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
)

var entryID = regexp.MustCompile(`mem_[a-z0-9]+`)

// TestMemoryCommands is a talk about what is remembered.
func TestMemoryCommands(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	say := func(text string, want ...string) string { t.Helper(); return w.tells(t, text, want...) }
	say("!remember", "`!remember my sister's")
	say("!remember bad\x00", "control character U+0000")
	if got := say("!remember  My tea is\ngreen.", "Remembered, in MEMORIES.txt: My tea is green."); entryID.MatchString(got) {
		t.Errorf("an id that nobody asked for: %s", got)
	}
	tea := entryID.FindString(say("!memory tea"))
	say("!remember my tea is green", "I know that already: My tea is green.")
	say("!remember my tea is hot", "Remembered")
	say("!memory", "**MEMORIES.txt** (2)", "- My tea is green. `"+tea+"`", "**memories/shared.txt** (0)")
	say("!memory HOT", "**MEMORIES.txt** (1)", "my tea is hot")
	say("!forget", "Say what")
	say("!forget coffee", "nothing like that")
	say("!forget mem_unknown", "nothing like that")
	say("!forget tea", "2 memories hold these words", tea, "green", "hot")
	say("!forget te", "nothing like that")
	say("!memory", "(2)")
	say("!undo", "no longer known: my tea is hot")
	say("!memory share "+tea, "Everybody who may talk to me", "green")
	if got, err := os.ReadFile(filepath.Join(dir, "memories", "shared.txt")); err != nil || !strings.Contains(string(got), "green") {
		t.Errorf("shared.txt: %q, %v", got, err)
	}
	say("!memory private "+tea, "private again")
	say("!undo", "as it was before: My tea is green.")
	say("!undo", "as it was before: My tea is green.")
	say("!memory", "**MEMORIES.txt** (1)", "shared.txt** (0)")
	say("!forget gree", "nothing like that")
	say("!forget green", "`!forget` with its id forgets it for good", "- My tea is green. `"+tea+"`")
	lacks(t, say("!forget "+tea, "Forgotten for good", "!remember"), "green")
	say("!memory", "**MEMORIES.txt** (0)")
	say("!undo", "gone for good")
	say("!remember my tea is green", "Remembered")
	say("!remember I am allergic to peanuts", "Remembered")
	say("!forget all", "nothing like that")
	say("!forget i am allergic to peanuts!", "Forgotten for good")

	// What the assistant notes says where it comes from, and is undone by whom it was noted for.
	w.script.answers = append(w.script.answers, `{"entry":"likes herons"}`, "Noted.")
	w.say(t, "$told", "I like herons")
	all, err := w.cfg.Memory.List(t.Context(), memory.Access{All: true}, memory.Filter{Words: "herons"})
	if err != nil || len(all) != 1 || all[0].Event != "$told" || all[0].Quote != "I like herons" || all[0].Source != memory.Assistant {
		t.Errorf("%+v, %v", all, err)
	}
	say("!undo", "no longer known: likes herons")
}

// TestSharedMemoryIsNotEverybodysToChange: in a direct chat people see what is
// shared; only who shared it, and an owner, may take it away.
func TestSharedMemoryIsNotEverybodysToChange(t *testing.T) {
	w := newWorld(t, t.TempDir())
	as := func(person, text string) string {
		t.Helper()
		return w.deliver(t, Inbound{Room: "!dm" + person, Sender: person, Text: text, Private: true, At: time.Now()}).Text
	}
	const ann, bob = "@ann:x", "@bob:x"
	as(ann, "!remember the wifi is Lovelace")
	id := entryID.FindString(as(ann, "!memory wifi"))
	as(ann, "!memory share "+id)
	for _, text := range []string{"!forget the wifi is Lovelace", "!forget " + id, "!memory private " + id, "!memory share " + id} {
		wants(t, as(bob, text), "Only the person it belongs to")
	}
	wants(t, as(bob, "!undo"), "no change of yours")
	wants(t, as(bob, "!memory"), "Lovelace")
	wants(t, as(owner, "!memory private "+id), "private again")
	wants(t, as(ann, "!memory"), "Lovelace")
}

// TestPrivateMemoryStaysPrivate tries every way known to get a private fact into
// a room with others, or to another person.
// Holds S1, S4.
func TestPrivateMemoryStaysPrivate(t *testing.T) {
	const canary = "CANARY-7431"
	for _, isolation := range []memory.Isolation{memory.Strict, memory.Common} {
		t.Run(string(isolation), func(t *testing.T) {
			dir := t.TempDir()
			w := newWorld(t, dir)
			w.cfg.Isolation = isolation
			w.script.forever = "fine"
			add := func(text string) memory.Entry {
				e, _, err := w.cfg.Memory.Add(t.Context(), memory.Entry{Scope: memory.Private(owner), Text: text, Source: memory.UserExplicit, Event: "$secret"}, owner)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			e := add("my code is " + canary)
			all := memory.Access{Actor: owner, All: true}
			ops := result(w.cfg.Memory.History(t.Context(), all, e.ID))(t)
			batch := ops[0].Batch
			say := func(room, person, text string, private bool) string {
				return w.deliver(t, Inbound{Room: room, Sender: person, Text: text, Private: private, At: time.Now()}).Text
			}
			ways := map[string]func() string{}
			for _, to := range []struct {
				name, room, person string
				private            bool
			}{{"group", "!group", owner, false}, {"guest", "!guest", "@guest:x", true}} {
				for _, text := range []string{"!memory", "!memory code", "!memory share " + e.ID, "!memory private " + e.ID, "!forget code", "!forget " + e.ID,
					"!undo", "!undo " + batch, "!status", "!prompt", "!whoami", "!tasks", "!remember my code is 1", "!retry"} {
					ways[to.name+" says "+text] = func() string { return say(to.room, to.person, text, to.private) }
				}
				scope := newSession(w.Manager, history.Talk(to.room)).toolScope(Inbound{ID: "$x", Room: to.room, Sender: to.person, Private: to.private}, roomMode{})
				for _, path := range []string{"data/MEMORIES.txt", "MEMORIES.txt", "./skills/../MEMORIES.txt", "data/memories", "data/bot.db", "data/memories/users/" + owner + ".txt"} {
					args, _ := json.Marshal(map[string]string{"path": path})
					ways[to.name+" reads "+path] = func() string {
						return w.cfg.Tools.Run(t.Context(), scope, llm.ToolCall{ID: "1", Name: "read_file", Arguments: string(args)}).Content
					}
				}
				ways[to.name+"'s tool notes the like"] = func() string {
					return w.cfg.Tools.Run(t.Context(), scope, llm.ToolCall{ID: "1", Name: "append_memory", Arguments: `{"entry":"my code is"}`}).Content
				}
				ways[to.name+"'s prompt"] = func() string {
					before := len(w.script.asked())
					got := say(to.room, to.person, "what is my code?", to.private)
					return got + strings.Join(w.script.asked()[before:], "\n")
				}
			}
			ways["the direct chat becomes a group"] = func() string {
				say("!mixed", owner, "hello", true)
				before := len(w.script.asked())
				got := say("!mixed", owner, "and now?", false)
				return got + strings.Join(w.script.asked()[before:], "\n")
			}
			ways["the room is upgraded"] = func() string {
				if err := w.Move(t.Context(), "!group", "!group2"); err != nil {
					t.Error(err)
				}
				return say("!group2", owner, "!memory", false)
			}
			for name, way := range ways {
				if got := way(); got == "" || strings.Contains(got, canary) {
					t.Errorf("%s: %q", name, got)
				}
			}
			if len(ways) < 20 {
				t.Errorf("only %d ways", len(ways))
			}
			files := result(filepath.Glob(filepath.Join(dir, "memories", "*", "*.txt")))(t)
			for _, file := range append(files, filepath.Join(dir, "memories", "shared.txt")) {
				if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), canary) {
					t.Errorf("it stands in %s", file)
				}
			}
			wants(t, say("!dm", owner, "!memory", true), canary)
		})
	}
}
