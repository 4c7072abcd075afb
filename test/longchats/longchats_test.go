package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/llm/encoder"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/prompt/section"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/task"
)

// TestSet checks that the chats are what they should be: as long as they were ordered, the same for
// the same seed, and with each piece of evidence in exactly one message of the person.
func TestSet(t *testing.T) {
	t.Parallel()
	const tokens = 100_000
	chats, err := makeSet(20, 1, tokens)
	if err != nil {
		t.Fatal(err)
	}
	again, err := makeSet(20, 1, tokens)
	if err != nil || !reflect.DeepEqual(chats[7].messages, again[7].messages) {
		t.Errorf("the same seed makes other chats: %v", err)
	}
	languages, kinds := map[string]bool{}, map[string]int{}
	for _, c := range chats {
		languages[c.l.code] = true
		sum, said := 0, map[string]message{}
		for _, m := range c.messages {
			sum += llm.EstimateTokens(m.Text)
			said[m.Ref] = m
			if strings.ContainsAny(m.Text, "{}|") {
				t.Errorf("%s has a slot: %s", m.Ref, m.Text)
			}
		}
		if sum < tokens || sum > tokens*11/10 {
			t.Errorf("%s has %d tokens", c.id, sum)
		}
		for _, q := range c.questions {
			kinds[q.Kind]++
			if (len(q.Evidence) == 0) != (q.Kind == "abstention" || q.Kind == "smalltalk") || strings.ContainsAny(q.Query, "{}|") {
				t.Errorf("%s, %s: %s %v", q.ID, q.Kind, q.Query, q.Evidence)
			}
			for _, f := range q.facts {
				if m := said[f.Ref]; (m.Speaker == "user") == (q.Sub == "answer") || !strings.Contains(m.Text, f.Text) {
					t.Errorf("%s: %q does not say %q", q.ID, m.Text, f.Text)
				}
			}
		}
	}
	if len(languages) != 5 {
		t.Errorf("%d languages", len(languages))
	}
	for _, k := range append([]string{"abstention"}, abilities...) {
		if kinds[k] < 40 {
			t.Errorf("%d questions of %s", kinds[k], k)
		}
	}
}

// TestBlock checks that the block that is measured is the one that the prompt has.
func TestBlock(t *testing.T) {
	t.Parallel()
	chats, err := makeSet(1, 1, 20_000)
	if err != nil {
		t.Fatal(err)
	}
	ctx, dir, c := t.Context(), t.TempDir(), chats[0]
	if _, err := store.WriteDefaults(reverie.Data, dir); err != nil {
		t.Fatal(err)
	}
	rig, err := newRig(ctx, dir, "", chats, false)
	if err != nil {
		t.Fatal(err)
	}
	defer rig.db.Close()
	past := history.NewStore(rig.db)
	a, err := prompt.New(prompt.Config{Layout: prompt.Stable, DB: rig.db, History: past, Sources: &section.Sources{Dir: dir, Defaults: reverie.Data,
		Name: "Reverie", SeedLanguage: "en", Memory: rig.words, Tasks: task.NewStore(rig.db, task.Config{}), Skills: skill.Open(dir+"/skills", nil)}})
	if err != nil {
		t.Fatal(err)
	}
	full, empty := 0, 0
	for i := range c.questions {
		q := &c.questions[i]
		results, err := measure(ctx, rig.words, q, rooms[:1], false)
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		turn := prompt.Turn{Window: 32768, MaxOutput: 2048, Turn: section.Turn{Room: "!r", User: c.user(), Now: q.Now, Mode: "assistant", Tier: 4,
			Scopes: []memory.Scope{memory.Scope(q.Scope), memory.Shared}, History: []history.Message{{ID: 1, Room: "!r", Role: llm.User, Sender: c.user(), Text: q.Query, At: q.Now, EventID: "$q"}}}}
		p, err := a.Assemble(ctx, turn)
		if err != nil {
			t.Fatal(err)
		}
		if r.silent {
			empty++
			if strings.Contains(p.Tail, "\n- 20") {
				t.Errorf("%s: the prompt recalls something: %s", q.Query, p.Tail)
			}
			continue
		}
		full++
		for line := range strings.SplitSeq(r.block, "\n- ") {
			head, _, _ := strings.Cut(strings.TrimPrefix(line, "- "), "\n")
			if !strings.Contains(p.Tail, head) {
				t.Errorf("%s: not in the prompt: %s", q.Query, head)
			}
		}
		if a, b := strings.Count(p.Tail, "\n- 20"), strings.Count("\n"+r.block, "\n- 20"); a != b {
			t.Errorf("%s: %d lines in the prompt, %d measured", q.Query, a, b)
		}
	}
	if full == 0 || empty == 0 {
		t.Errorf("%d questions recall something, %d nothing", full, empty)
	}
}

// TestBothSides: a question gets both of two statements that contradict each other, though one or both share no
// word with it, what the assistant said if it asks for that, and nothing if nobody said anything of it.
func TestBothSides(t *testing.T) {
	t.Parallel()
	if !encoder.BuiltIn() {
		t.Skip("the program has no weights of an encoder")
	}
	c := &chat{id: "en0", person: "Peter", l: &language{code: "en"}}
	day := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	tell := func(text, memory string) *fact {
		day = day.AddDate(0, 0, 1)
		f := &fact{Ref: fmt.Sprint("m", len(c.messages)), Text: text, Memory: memory, At: day}
		said := func(who, ref, text string) {
			c.messages = append(c.messages, message{Text: text, Scope: c.scope(), Subject: "Peter", Speaker: who, ObservedAt: day, Ref: ref, Conversation: c.id, Seq: len(c.messages) + 1})
		}
		said("user", f.Ref, text)
		said("assistant", f.Ref+"a", "Noted. The herons of the weir are a fine sight in the morning, and there is much to be said for a quiet walk.")
		c.facts = append(c.facts, f)
		return f
	}
	never, sober, alone := tell("I have never been on a plane.", "Peter has never been on a plane."),
		tell("I gave up alcohol two years ago.", "Peter gave up alcohol two years ago."),
		tell("I grew up as an only child.", "Peter grew up as an only child.")
	things := []string{"shelf", "gate", "lamp", "stove", "ladder", "bench", "mirror", "carpet", "bucket", "cupboard", "window", "roof"}
	for i, thing := range things {
		for _, what := range []string{"painted the %s green.", "sold the old %s to a neighbour.", "keeps a %s in the cellar.", "wants a new %s by autumn.", "lent the %s to Maria."} {
			text := fmt.Sprintf(what, thing)
			tell("I "+text, fmt.Sprintf("Peter %s It was the %d.", text, 10+i))
		}
	}
	flight, red, brother := tell("My flight to Rome leaves at nine.", "Peter has a flight to Rome at nine."),
		tell("We opened a bottle and I had three glasses of red.", "Peter had three glasses of red wine."),
		tell("My younger brother Sam turned thirty.", "Peter has a younger brother called Sam who turned thirty.")
	advice := &fact{Ref: "m0a", Text: "The herons of the weir are a fine sight"}
	rig, err := newRig(t.Context(), t.TempDir(), "", []*chat{c}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer rig.db.Close()
	for query, facts := range map[string][]*fact{
		"Have I ever flown?": {never, flight}, "Do I drink wine?": {sober, red}, "Do I have brothers or sisters?": {alone, brother},
		"What did you say about the herons?": {advice}, "What is my blood group?": nil, "See you tomorrow then.": nil,
	} {
		results, err := measure(t.Context(), rig.both, &question{Query: query, Scope: c.scope(), Now: day.AddDate(0, 0, 10), facts: facts}, rooms[1:2], false)
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if len(facts) == 0 && !r.silent {
			t.Errorf("%s: recalled\n%s", query, r.block)
		}
		for i, f := range facts {
			if !r.present[i] || !f.At.IsZero() && !strings.Contains(r.block, f.At.Format("2006-01-02")) {
				t.Errorf("%s: %q of %s is missing in\n%s", query, f.Text, f.At.Format("2006-01-02"), r.block)
			}
		}
	}
}
