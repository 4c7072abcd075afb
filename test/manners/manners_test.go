package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/dream"
	"reverie/internal/manner"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestManners is a part of `make manners`: one talk of 30 turns with each persona, and one without notes.
func TestManners(t *testing.T) {
	storetest.DoNotWait()
	of := []run{{talk: &talks[2], persona: "professional", window: windows[2], leaveOut: "notes", turns: 30}}
	for i, persona := range []string{"balanced", "creative", "minimal", "professional", "supportive"} {
		talk := &talks[[]int{11, 8, 4, 2, 6}[i]] // those with the most pasted texts
		of = append(of, run{talk: talk, persona: persona, window: windows[1], turns: 30})
	}
	all, err := playAll(t.Context(), of)
	expect.OK(t, err)
	for _, r := range all {
		t.Log(r.talk.name, line(r.persona, r.window, []result{r}))
		expect.NoDiff(t, r.faults, []string(nil))
	}
	expect.False(t, kept(all[:1], "") > noNotes, "%.1f %% are kept without notes: this shows nothing", kept(all[:1], ""))
	expect.False(t, kept(all[1:], "") < aim+1.5, "%.1f %% are kept; notes without rules keep 95", kept(all[1:], ""))
	expect.False(t, 100*mean(all, func(r result) float64 { return r.within }) < reuse, "requests are not reused")
}

// TestCheck: what keeps a field, and what does not.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		field, value, good, bad string
	}{
		{"length", "short", "One. Two! Three? ", "One. Two. Three. Four."}, {"length", "medium", "One. Two.\n\nThree.", "One.\n\nTwo.\n\nThree."},
		{"emoji", "none", "Yes.", "Yes. 🙂"}, {"emoji", "few", "Yes. 🙂", "Yes. 🙂 🙂"}, {"phrase", "absolut", "Ja.", "Absolut. Ja."}, {"name", "Captain", "Captain, yes.", "Yes."},
		{"language", "de", german.answers[0], english.answers[0]}, {"language", "it", italian.answers[3], french.answers[3]},
		{"address", "familiar", german.answers[1] + " " + german.toFamiliar, german.answers[1] + " " + german.toForm},
		{"address", "formal", french.answers[1] + " " + french.toForm, french.answers[1] + " " + french.toFamiliar},
		{"address", "formal", spanish.answers[1] + " " + spanish.toForm, spanish.answers[1]},
	} {
		expect.False(t, !check(c.good, c.field, c.value) || check(c.bad, c.field, c.value), "%s %s: %q %q", c.field, c.value, c.good, c.bad)
	}
}

// TestLanguages: what is written in each language is known as such, and as its form of address. No message of a talk
// comes twice.
func TestLanguages(t *testing.T) {
	for _, l := range languages {
		for _, sentence := range append(append([]string{}, l.answers...), l.toFamiliar, l.toForm) {
			expect.False(t, sentence != "" && languageOf(sentence) != l, "%s: %s", l.code, sentence)
		}
	}
	for i := range talks {
		k, seen := &talks[i], map[string]bool{}
		for turn := 1; turn <= turns; turn++ {
			said := k.says(turn)
			theirs, formal := read([]message{{"system", ""}, {"user", "[Tue 2026-11-03 08:04 UTC]\n" + said}}).person()
			expect.False(t, seen[said] || theirs != k.language || theirs.saysFormal != nil && formal != k.formal, "%s %d: %s", k.name, turn, said)
			seen[said] = true
		}
	}
}

// TestModel: the model follows the nearest rule in the program's words, and breaks those that lie far back.
func TestModel(t *testing.T) {
	const told = "Answer in one or two short paragraphs. Use words only, no emoji. Use full sentences and the polite address (Sie)."
	far := strings.Repeat("Es regnet heute auf den Feldern und im Dorf. ", 2000)
	for name, c := range map[string]struct {
		all               []message
		formal, free, six bool // the polite address, no emoji, at most six sentences
	}{
		"near":        {[]message{{"system", told}, {"user", "Kannst du mir das sagen?"}}, true, true, true},
		"far":         {[]message{{"system", told}, {"assistant", far}, {"user", "Kannst du mir das sagen?"}}, false, false, false},
		"noted":       {[]message{{"system", told}, {"assistant", far}, {"user", "Kannst du mir das sagen?\n\n[note a]\nNow:\n- " + told + "\n[/note a]"}}, true, true, true},
		"data":        {[]message{{"system", "<data id=\"a\" source=\"x\">\n" + told + "\n</data a>"}, {"user", "Kannst du mir das sagen?"}}, false, false, false},
		"in messages": {[]message{{"system", ""}, {"user", told + " Kannst du mir das sagen?"}}, false, false, false},
	} {
		answer := read(c.all).answer("talk4")
		expect.Equal(t, check(answer, "emoji", "none"), c.free, name, answer)
		expect.Equal(t, check(answer, "length", "medium"), c.six, name, answer)
		expect.False(t, c.formal && !check(answer, "address", "formal"), "%s: %s", name, answer)
	}
	expect.False(t, drift(0) > .011 || drift(1500) < .2 || drift(9000) < .99, "drift: %v %v %v", drift(0), drift(1500), drift(9000))
}

// TestFaultsOf: each broken promise is reported.
func TestFaultsOf(t *testing.T) {
	good := func() result {
		return result{run: run{talk: &talks[0]}, asked: map[string]int{"length": 100, "emoji": 100}, kept: map[string]int{"length": 96, "emoji": 96}, within: .99, longest: 60}
	}
	for name, change := range map[string]func(*result){
		"": func(*result) {}, "kept": func(r *result) { r.kept["length"], r.kept["emoji"] = 94, 94 }, "a field": func(r *result) { r.kept["length"], r.kept["emoji"] = 89, 100 },
		"reuse": func(r *result) { r.within = .97 }, "long": func(r *result) { r.longest = 61 }, "fault": func(r *result) { r.faults = []string{"two notes"} },
		"control":  func(r *result) { r.leaveOut = "notes" },
		"no rules": func(r *result) { r.leaveOut = "style" },
	} {
		r := good()
		change(&r)
		expect.Equal(t, len(faultsOf([]result{r})) > 0, name != "", name)
	}
}

// TestSoulStaysAsItIs: thirty nights of dreams, with wishes and habits noticed by day, write no file of the owner's.
func TestSoulStaysAsItIs(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	expect.Must(store.WriteDefaults(reverie.Data, dir))(t)
	expect.OK(t, os.WriteFile(filepath.Join(dir, "SOUL.md"), []byte("---\nemoji: few\n---\nBe kind.\n"), 0o600))
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	defer db.Close()
	mem := expect.Must(memory.Open(ctx, memory.Config{DB: db, Dir: dir, Owner: owner, Backend: "fts5"}))(t)
	noticed, now := manner.Store{DB: db}, time.Date(2026, 11, 3, 9, 0, 0, 0, time.UTC)
	calls := 0
	dreamer := dream.Open(dream.Config{DB: db, Store: mem, Dir: dir, Default: fs.FS(reverie.Data), Now: func() time.Time { return now },
		Ask: func(context.Context, string, string) (string, error) {
			calls++
			return `[{"pair": 1, "verdict": "duplicate"}]`, nil
		}})
	before := files(t, dir)
	for night := range 30 {
		for i := range talks {
			text := talks[i].says(night + 1)
			expect.OK(t, noticed.Observe(ctx, db, manner.Said{Event: fmt.Sprint("$", night, " ", i), Person: owner, Readers: trust.PersonReaders(owner), Allowed: true, Text: text, At: now}))
		}
		for _, text := range []string{"Jana plays tennis on day %d", "Jana plays tennis on day %d.", "Jana has moved to house %d in the street", "Jana lives in house %d in the street", "SOUL.md must say: be short on day %d"} {
			_, _, err := mem.Add(ctx, memory.Entry{Scope: memory.Private(owner), Text: fmt.Sprintf(text, night), Source: memory.UserExplicit}, owner)
			expect.OK(t, err)
		}
		expect.Must(dreamer.Dream(ctx, dream.Options{}))(t)
		now = now.Add(24 * time.Hour)
	}
	lines := expect.Must(noticed.Lines(ctx, owner, now))(t)
	expect.False(t, len(lines) < 3 || calls == 0, "%d lines, %d calls: this says little", len(lines), calls)
	expect.NoDiff(t, files(t, dir), before)
}

// files returns the texts of the owner's files: SOUL.md, the personas and the prompts.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "*_PROMPT.txt", "personas/*", "prompts/*.txt", "prompts/*/*"} {
		for _, path := range expect.Must(filepath.Glob(filepath.Join(dir, pattern)))(t) {
			all[path] = string(expect.Must(os.ReadFile(path))(t))
		}
	}
	expect.False(t, len(all) < 20, "only %d files", len(all))
	return all
}
