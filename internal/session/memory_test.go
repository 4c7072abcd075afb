package session

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/questions"
	"reverie/internal/settings"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

var entryID = regexp.MustCompile(`mem_[a-z0-9]+`)

// TestMemoryCommands is a conversation with the memory commands.
func TestMemoryCommands(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	say := func(text string, want ...string) string { t.Helper(); return w.tells(t, text, want...) }
	say("!remember", "`!remember my sister's")
	say("!remember bad\x00", "control character U+0000")
	got := say("!remember  My tea is\ngreen.", "Remembered in MEMORIES.txt: My tea is green.")
	expect.False(t, entryID.MatchString(got), "an id that nobody asked for: %s", got)
	tea := entryID.FindString(say("!memory tea"))
	say("!remember my tea is green", "I already know that: My tea is green.")
	say("!remember my tea is hot", "Remembered")
	say("!memory", "**MEMORIES.txt** (2)", "- My tea is green. `"+tea+"`", "**memories/shared.txt** (0)")
	say("!memory HOT", "**MEMORIES.txt** (1)", "my tea is hot")
	say("!memory timeline tea", "My tea is green.", "\n- ", "my tea is hot")
	say("!memory timeline zebra", "no such memory")
	say("!forget", "Add what I should forget")
	say("!forget coffee", "no such memory")
	say("!forget mem_unknown", "no such memory")
	say("!forget tea", "2 memories contain these words", tea, "green", "hot")
	say("!forget te", "no such memory")
	say("!memory", "(2)")
	say("!undo", "no longer remembered: my tea is hot")
	say("!memory share "+tea, "Everyone who may talk to me", "green")
	expect.Has(t, string(expect.Must(os.ReadFile(filepath.Join(dir, "memories", "shared.txt")))(t)), "green")
	say("!memory private "+tea, "private again")
	say("!undo", "as before: My tea is green.")
	say("!undo", "as before: My tea is green.")
	say("!memory", "**MEMORIES.txt** (1)", "shared.txt** (0)")
	say("!forget gree", "no such memory")
	say("!forget green", "`!forget` with its id forgets it for good", "- My tea is green. `"+tea+"`")
	expect.Lacks(t, say("!forget "+tea, "Forgotten for good", "!remember"), "green")
	say("!memory", "**MEMORIES.txt** (0)")
	say("!undo", "cannot be undone")
	say("!remember my tea is green", "Remembered")
	say("!remember I am allergic to peanuts", "Remembered")
	say("!forget all", "no such memory")
	say("!forget i am allergic to peanuts!", "Forgotten for good")

	// An entry of the assistant names its source, and its person can undo it.
	w.script.answers = append(w.script.answers, `{"entry":"likes herons"}`, "Noted.")
	w.say(t, "$told", "I like herons")
	all, err := w.cfg.Memory.List(t.Context(), memory.Access{All: true}, memory.Filter{Words: "herons"})
	expect.False(t, err != nil || len(all) != 1 || all[0].Event != "$told" || all[0].Quote != "I like herons" || all[0].Source != memory.Assistant,
		"%+v, %v", all, err)
	say("!undo", "no longer remembered: likes herons")
}

// TestSharedMemoryIsNotEverybodysToChange: people see shared entries in a direct chat, but only their sharer and owners may remove them.
func TestSharedMemoryIsNotEverybodysToChange(t *testing.T) {
	w := newWorld(t, t.TempDir())
	as := func(person, text string) string {
		t.Helper()
		return w.deliver(t, chat.Message{Head: chat.Head{Room: "!dm" + person, Sender: person, Private: true, At: time.Now()}, Text: text}).Text
	}
	const ann, bob = "@ann:x", "@bob:x"
	as(ann, "!remember the wifi is Lovelace")
	id := entryID.FindString(as(ann, "!memory wifi"))
	as(ann, "!memory share "+id)
	for _, text := range []string{"!forget the wifi is Lovelace", "!forget " + id, "!memory private " + id, "!memory share " + id} {
		expect.Has(t, as(bob, text), "Only the person it belongs to")
	}
	expect.Has(t, as(bob, "!undo"), "not changed anything here that I could undo")
	expect.Has(t, as(bob, "!memory"), "Lovelace")
	expect.Has(t, as(owner, "!memory private "+id), "private again")
	expect.Has(t, as(ann, "!memory"), "Lovelace")
}

// TestPrivateMemoryStaysPrivate tries every known way to get a private fact to other people.
// Holds S1, S4.
func TestPrivateMemoryStaysPrivate(t *testing.T) {
	const canary = "CANARY-7431"
	for _, isolation := range []memory.Isolation{memory.Strict, memory.Common} {
		t.Run(string(isolation), func(t *testing.T) {
			dir := t.TempDir()
			w := newWorld(t, dir)
			w.cfg.Isolation = isolation
			w.script.forever = "fine"
			e := w.known(t, memory.Private(owner), "my code is "+canary)
			say := func(room, person, text string, private bool) string {
				return w.deliver(t, chat.Message{Head: chat.Head{Room: room, Sender: person, Private: private, At: time.Now()}, Text: text}).Text
			}
			ways := map[string]func() string{}
			for _, to := range []struct {
				name, room, person string
				private            bool
			}{{"group", "!group", owner, false}, {"guest", "!guest", "@guest:x", true}} {
				for _, text := range []string{"!memory", "!memory code", "!memory share " + e.ID, "!memory private " + e.ID, "!forget code", "!forget " + e.ID,
					"!undo", "!status", "!prompt", "!whoami", "!tasks", "!remember my code is 1", "!retry"} {
					ways[to.name+" says "+text] = func() string { return say(to.room, to.person, text, to.private) }
				}
				scope := newSession(w.Manager, history.Timeline(to.room)).toolScope(item{Message: chat.Message{Head: chat.Head{ID: "$x", Room: to.room, Sender: to.person, Private: to.private}}}, settings.RoomMode{})
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
					return say(to.room, to.person, "what is my code?", to.private) + strings.Join(w.script.asked()[before:], "\n")
				}
			}
			ways["the direct chat becomes a group"] = func() string {
				say("!mixed", owner, "hello", true)
				before := len(w.script.asked())
				return say("!mixed", owner, "and now?", false) + strings.Join(w.script.asked()[before:], "\n")
			}
			ways["the room is upgraded"] = func() string {
				expect.OK(t, w.RoomReplaced(t.Context(), "!group", "!group2"))
				return say("!group2", owner, "!memory", false)
			}
			for name, way := range ways {
				got := way()
				expect.False(t, got == "" || strings.Contains(got, canary), "%s: %q", name, got)
			}
			expect.False(t, len(ways) < 20, "only %d ways", len(ways))
			files := expect.Must(filepath.Glob(filepath.Join(dir, "memories", "*", "*.txt")))(t)
			for _, file := range append(files, filepath.Join(dir, "memories", "shared.txt")) {
				data, err := os.ReadFile(file)
				expect.False(t, err == nil && strings.Contains(string(data), canary), "it stands in %s", file)
			}
			expect.Has(t, say("!dm", owner, "!memory", true), canary)
		})
	}
}

// TestUpgradeCopiesMemory: the new room knows what the old one knew, also what its file does not show. Lines of an imported
// conversation are not copied.
func TestUpgradeCopiesMemory(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), "fts5", 16_000)
	for i := range 60 { // the file shows 40
		e := memory.Entry{Scope: memory.Room("!group"), Text: fmt.Sprintf("fact number %d", i), Source: memory.UserExplicit}
		if i == 0 {
			e.Conversation, e.Seq = "imported", 1
		}
		_, _, err := w.cfg.Memory.Add(t.Context(), e, owner)
		expect.OK(t, err)
	}
	expect.OK(t, w.RoomReplaced(t.Context(), "!group", "!next"))
	expect.Len(t, w.column(t, `SELECT text FROM memory WHERE scope = 'room:!next'`), 59, "entries of the new room")
}

// TestRememberedIntegrity: entries and indexed messages have the integrity of their sender.
func TestRememberedIntegrity(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), "fts5", 16_000, "Noted.")
	const friend = "@friend:example.org"
	for _, in := range []chat.Message{
		{Head: chat.Head{ID: "$1", Room: "!dm", Sender: owner, Private: true}, Text: "!remember the owner's tea"},
		{Head: chat.Head{ID: "$2", Room: "!dm2", Sender: friend, Private: true}, Text: "!remember the friend's tea"},
		{Head: chat.Head{ID: "$3", Room: "!dm2", Sender: friend, Private: true}, Text: "The harbour is nice."},
		{Head: chat.Head{ID: "$4", Room: "!dm", Sender: owner, Private: true}, Text: "The harbour is nice."},
	} {
		w.deliver(t, in)
	}
	w.indexedTexts(t, 4)
	entries := w.column(t, `SELECT scope || ' ' || integrity FROM memory ORDER BY scope`)
	said := w.column(t, `SELECT DISTINCT sender || ' ' || integrity FROM past_message WHERE sender <> '' ORDER BY sender`)
	for i, of := range []string{fmt.Sprintf("%s %d", friend, trust.User), fmt.Sprintf("%s %d", owner, trust.Owner)} {
		expect.False(t, len(entries) != 2 || entries[i] != "private:"+of || len(said) != 2 || said[i] != of, "noted: %q, said: %q", entries, said)
	}
	if least := value[trust.Integrity](t, w, `SELECT min(integrity) FROM past_message WHERE sender = ''`); least < trust.User {
		t.Errorf("the answers are %v", least) // they are trusted as what they were made from
	}
}

// remember stores the room's person, for prompts without a message.
func (m *Manager) remember(ctx context.Context, in chat.Head) error {
	return m.recordRoom(ctx, m.cfg.DB, in)
}

// TestKeepCommand: only the person concerned can answer a question, by its number.
func TestKeepCommand(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.cfg.Dreams = &command.Dreams{Status: func(context.Context, i18n.Say) (string, error) { return "slept well", nil }}
	const guest = "@guest:example.org"
	as := func(person, room string, private bool, text string, want ...string) string {
		t.Helper()
		got := w.deliver(t, chat.Message{Head: chat.Head{Room: room, Sender: person, Private: private, At: time.Now()}, Text: text})
		expect.Has(t, got.Text, want...)
		expect.False(t, !got.Notice, "%s: the model was asked: %+v", text, got)
		return got.Text
	}
	say := func(text string, want ...string) string { t.Helper(); return as(owner, "!dm", true, text, want...) }
	ask := func(scope memory.Scope, what string) questions.Question {
		t.Helper()
		q := questions.Question{Run: "dream_1", Scope: scope, Why: "both are from the same time"}
		for i, e := range []*memory.Entry{&q.First, &q.Second} {
			*e = w.known(t, scope, what+[]string{" in Rome.", " in Oslo."}[i])
		}
		expect.Must(questions.Store{DB: w.cfg.DB}.Add(t.Context(), q))(t)
		return q
	}
	say("!memory keep", "no questions")
	ask(memory.Private(owner), "I live")
	ask(memory.Private(guest), "I hide")
	ask(memory.Shared, "All meet")
	ask(memory.Room("!group"), "We eat")
	other := ask(memory.Private(owner), "I work")

	list := say("!memory keep", "**Question 1**: which of the two is right? (both are from the same time)", "a) ", "I live in Rome.", "b) ", "I live in Oslo.", "`!memory keep 1a`", "Question 3", "Question 5")
	expect.Lacks(t, list, "hide", "We eat", "mem_")
	say("!dream status", "slept well", "Question 1")
	say("!memory keep calm", "no such memory") // words to be looked for
	say("!memory keep 2a", "no such question here")
	say("!memory keep 4 both", "no such question here")
	say("!memory keep 123456789012345678b", "no such question here")
	as(guest, "!guest", true, "!memory keep 1a", "no such question here")
	as(guest, "!guest", true, "!memory keep 3a", "Only the person it belongs to, or an owner")
	as(guest, "!group", false, "!memory keep 1b", "no such question here")
	as(guest, "!group", false, "!memory keep 4b", "now: We eat in Oslo.", "no longer: We eat in Rome.", "`!undo`")

	say("!memory keep 1 A", "now: I live in Rome.", "no longer: I live in Oslo.")
	say("!memory keep 1b", "no such question here")
	say("!undo", "remembered again: I live in Oslo.")
	say("!memory keep 1b", "now: I live in Oslo.", "no longer: I live in Rome.")
	say("!memory keep 5 both", "I keep both")
	say("!forget "+other.First.ID, "Forgotten for good")
	say("!memory keep 5a", "no such question here")
	expect.Lacks(t, say("!memory keep 3b", "now: All meet in Oslo."), "sentence")
	say("!memory keep", "no questions")
	say("!memory", "I live in Oslo.")
}

// TestMemoryQuestionIsANotice: a question is sent once as a notice, and the history has it when the person answers.
func TestMemoryQuestionIsANotice(t *testing.T) {
	w := newWorld(t, t.TempDir(), "Noted.")
	s := &source{told: make(chan string, 100)}
	w.cfg.Events = map[chat.EventKind]Source{chat.MemoryQuestion: s}
	for range 2 { // delivered again after a restart
		expect.OK(t, w.Deliver(t.Context(), chat.Event{Head: chat.Head{ID: "question:1", Room: "!dm", Sender: owner}, Text: "Rome or Oslo?", Kind: chat.MemoryQuestion, Verbatim: true, Label: programLabel(trust.PersonReaders(owner))}))
		select {
		case <-s.told:
		case <-time.After(testTimeout):
			t.Fatal("not done")
		}
	}
	m := w.room.newest()
	expect.False(t, m.Text != "Rome or Oslo?" || !m.Notice || m.Mention != nil, "the room read %+v", m)
	expect.Equal(t, w.room.count()+len(w.script.asked()), 1)
	w.say(t, "$1", "Oslo is right.")
	asked := w.script.asked()
	expect.False(t, len(asked) != 1 || strings.Count(asked[0], "Rome or Oslo?") != 1, "the model does not know what was asked: %q", asked)
	want := []string{"question:1: Rome or Oslo?", "question:1: Rome or Oslo?"}
	expect.False(t, !slices.Equal(s.done, want), "%q", s.done)
}

// indexedTexts waits until n messages are indexed, and returns them in order.
func (w *world) indexedTexts(t *testing.T, n int) (all []string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		all = w.column(t, `SELECT scope || ' ' || sender || ': ' || text FROM past_message ORDER BY seq`)
		if len(all) >= n || time.Now().After(end) {
			return all
		}
	}
}

// TestEarlierConversationsAreRecalled: a later conversation of the same person or room recalls messages that it asks for.
func TestEarlierConversationsAreRecalled(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), "fts5", 16_000, "Noted: zanzibar.")
	w.say(t, "$1", "The code word of my locker is zanzibar.")
	w.indexedTexts(t, 2)
	w.say(t, "$1", "The code word of my locker is zanzibar.") // delivered again
	w.say(t, "$2", "!new")
	w.say(t, "$3", "What was the code word of my locker?")
	last := w.lastAsked()
	if !strings.Contains(last, "Recalled for this message:") || !strings.Contains(last, owner+" said: The code word of my locker is zanzibar.") ||
		!strings.Contains(last, "after: "+time.Now().UTC().Format(time.DateOnly)+", you said: Noted: zanzibar.") {
		t.Errorf("not recalled: %s", last)
	}
	got := w.indexedTexts(t, 4)
	want := []string{"private:" + owner + " " + owner + ": The code word of my locker is zanzibar.", "private:" + owner + " : Noted: zanzibar.",
		"private:" + owner + " " + owner + ": What was the code word of my locker?", "private:" + owner + " : fine"}
	expect.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"))
	for i, in := range []chat.Message{
		{Head: chat.Head{Room: "!group", Sender: owner}, Text: "What was the code word of my locker?"},
		{Head: chat.Head{Room: "!dm2", Sender: "@friend:example.org", Private: true}, Text: "What was the code word of the locker?"},
	} {
		in.ID, in.At = fmt.Sprintf("$other%d", i), time.Now()
		w.deliver(t, in)
		expect.Lacks(t, w.lastAsked(), "zanzibar")
	}
	if got := w.indexedTexts(t, 8); !strings.HasPrefix(got[len(got)-1], "room:") && !strings.HasPrefix(got[len(got)-1], "private:@friend") {
		t.Errorf("heard:\n%s", strings.Join(got, "\n"))
	}
}

// TestIndexedAfterInterruption: messages not indexed before a crash are indexed later for their readers, without redacted ones.
func TestIndexedAfterInterruption(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), "fts5", 16_000)
	for i, m := range []history.Message{
		{Role: llm.User, EventID: "$1", Sender: owner, Text: "between us two", Header: "[Sat 2026-11-21 08:14 CET]"},
		{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "c", Name: "task", Arguments: `{"action":"list"}`}}},
		{Role: llm.Tool, CallID: "c", Text: "no tasks"},
		{Role: llm.Assistant, EventID: "re:$1", Text: "nobody else"},
		{Role: llm.User, EventID: "$2", Sender: owner, Text: "[taken back]", Header: "[Sat 2026-11-21 08:15 CET]"},
		{Role: llm.User, Text: "Tidy up the tasks.", Header: "[Sat 2026-11-21 08:16 CET, system event]"},
		{Role: llm.Assistant, EventID: "re:$e", Text: "tidied"},
	} {
		m.Room, m.At = "!dm", time.Now().Add(time.Duration(i-10)*time.Minute)
		m.Label = trust.Label{Integrity: trust.Owner, Readers: trust.PersonReaders(owner)}
		expect.OK(t, w.cfg.History.Append(t.Context(), &m))
	}
	w.deliver(t, chat.Message{Head: chat.Head{ID: "$3", Room: "!dm", Sender: owner, At: time.Now()}, Text: "before everybody"}) // it has become a group
	got := strings.Join(w.indexedTexts(t, 4), "\n")
	want := "private:" + owner + " " + owner + ": between us two\nprivate:" + owner + " : nobody else\nroom:!dm " + owner + ": before everybody\nroom:!dm : fine"
	expect.Equal(t, got, want)
}

// TestUseIsCounted: a memory counts as used if the answer has words of it that the question has not; showing it does not count.
// Holds W12.
func TestUseIsCounted(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), "fts5", 16_000, "She lives in Brno.", "I do not know where Jana lives.", "The number is 4711.", "It costs 900 crowns.")
	for _, text := range []string{"Ada's sister Jana lives in Brno.", "The tram pass has the number 4711.", "The piano cost 900 crowns."} {
		w.known(t, memory.Private(owner), text)
	}
	hits := func(want string) {
		t.Helper()
		var got string
		for end := time.Now().Add(30 * time.Second); got != want && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			expect.OK(t, w.cfg.DB.QueryRow(`SELECT group_concat(hits, ' ') FROM (SELECT hits FROM memory ORDER BY n)`).Scan(&got))
		}
		expect.Equal(t, got, want)
	}
	w.say(t, "$1", "Where does Jana live, my sister?")
	hits("1 0 0")
	w.say(t, "$2", "Where does Jana live, my sister?")
	w.say(t, "$3", "And the tram pass?")
	hits("1 1 0") // not 2 1 0: the second answer used nothing
	w.say(t, "$4", "What do 900 crowns buy?")
	w.indexedTexts(t, 8)
	hits("1 1 0") // the question brought the number itself
}

// TestEarlierConversationsAreListed: a new conversation begins with how the last ones of the room began, as far as
// its readers may read them, once. What is edited, redacted or forgotten goes from there, too.
func TestEarlierConversationsAreListed(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), "flat_file", 32_000)
	listed := func() string {
		t.Helper()
		_, _, last := readAsked(t, w.lastAsked())
		_, list, _ := strings.Cut(last, "How the last ones in this room began, the newest first:\n")
		list, _, _ = strings.Cut(list, "\n</data")
		return regexp.MustCompile(`(?m)^<data.*\n|^- [0-9-]+, `+owner+` said: `).ReplaceAllString(list, "")
	}
	n := 0
	say := func(text string) { n++; w.say(t, fmt.Sprint("$", n), text) }
	say("What shall I plant in the garden behind the house?")
	expect.Equal(t, listed(), "")
	for _, talk := range []string{"hi", "Explain the tram pass with the number 4711 to me.", "What is\n a good soup for " + strings.Repeat("many ", 20) + "people?", "Plan my week.."} {
		say("!new")
		say(talk)
	}
	say("!new")
	say("hello")
	expect.NoDiff(t, listed(), "Plan my week..\nWhat is a good soup for many many many many many many many many many many many …\n"+
		"Explain the tram pass with the number 4711 to me.\nWhat shall I plant in the garden behind the house?")
	before := w.sessions["!dm"].lastRequest
	say("and now?")
	reused := repeated(before, w.sessions["!dm"].lastRequest)
	expect.False(t, reused < .98 || strings.Count(w.lastAsked(), "How the last ones") != 1, "%.2f is reused, or the list is shown again", reused)

	w.deliver(t, chat.Redaction{Change: chat.Change{Head: mannerHead("$r"), Target: "$1"}})
	w.deliver(t, chat.Edit{Change: chat.Change{Head: mannerHead("$e"), Target: "$5"}, Text: "Explain the bus pass to me."})
	say("!forget " + w.known(t, memory.Private(owner), "The soup is for many people.").ID)
	for _, gone := range []string{"garden", "tram pass"} {
		expect.Equal(t, len(w.column(t, `SELECT tail FROM message WHERE instr(tail, ?) > 0`, gone)), 0, gone)
		expect.Equal(t, len(w.column(t, `SELECT prefix FROM prompt_epoch WHERE instr(prefix, ?) > 0`, gone)), 0, gone)
	}
	say("!new")
	say("hello")
	expect.NoDiff(t, listed(), "Plan my week..\nExplain the bus pass to me.")

	w.deliver(t, chat.Message{Head: chat.Head{ID: "$g", Room: "!dm", Sender: owner, At: time.Now()}, Text: "now others read this"})
	expect.Equal(t, listed(), "", "a group sees the direct chat that it was")
	w.deliver(t, chat.Message{Head: chat.Head{ID: "$o", Room: "!dm2", Sender: "@friend:example.org", Private: true, At: time.Now()}, Text: "hello"})
	expect.Equal(t, listed(), "", "another person sees it")
}
