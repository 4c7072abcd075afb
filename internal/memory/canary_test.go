package memory

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCanaryIsNeverFound tries every way to get what one person said in private
// to a room with others, or to another person, by looking for it.
// Holds S1, S4.
func TestCanaryIsNeverFound(t *testing.T) {
	t.Parallel()
	const canary, near, guest, room = "zanzibarium", "heron", "@guest:x", "!group:x"
	for _, member := range table {
		t.Run(member.name, func(t *testing.T) {
			ctx, s := t.Context(), openAt(t, t.TempDir())
			me := as(owner)
			places := map[string]Access{
				"group":      {Actor: owner, Scopes: Strict.Visible(room, owner, false)},
				"guest":      {Actor: guest, Scopes: Strict.Visible("!dm:x", guest, true)},
				"group, one": {Actor: owner, Scopes: Common.Visible(room, owner, false)},
				"guest, one": {Actor: guest, Scopes: Common.Visible("!dm:x", guest, true)},
				"an owner":   {Actor: owner, Scopes: Strict.Visible(room, owner, false), Owner: true},
			}
			// The same conversation, and the same words, are open and private.
			open := `{"text":"a heron came by","scope":"room:!group:x","ref":"r1","conversation":"c","seq":1,"observed_at":"2026-03-01"}
{"text":"what did it do?","scope":"room:!group:x","ref":"r3","conversation":"c","seq":3,"observed_at":"2026-03-01"}
{"text":"a heron is a bird","scope":"shared","ref":"s","observed_at":"2026-03-02"}
{"text":"my heron","scope":"private:@guest:x","ref":"g","conversation":"c","seq":2,"observed_at":"2026-03-01"}`
			must(newImporter(s).Import(ctx, "open", []byte(open)))(t)
			for _, scope := range []Scope{Room(room), Private(guest)} {
				noError(t, s.index.Hear(ctx, Turn{Scope: scope, Event: "$o", Text: "the heron again", At: today, Conversation: "c", Seq: 4}))
			}
			ways := canaryQueries(canary, near)
			ask := func() map[string]string {
				x, got := member.open(t, s.index), map[string]string{}
				for place, a := range places {
					for name, q := range ways {
						q.Scopes = a.Scopes
						hits, err := x.Search(ctx, q)
						b, jsonErr := json.Marshal(hits)
						if err != nil || jsonErr != nil {
							t.Fatal(err, jsonErr)
						}
						got[place+": "+name] = string(b)
					}
				}
				return got
			}
			before := ask()
			secret := hide(t, s, canary, near)

			// Not only is it not found: nothing of what is found, no score and no order,
			// tells that it is there.
			after := ask()
			for _, name := range slices.Sorted(maps.Keys(before)) {
				if after[name] != before[name] || strings.Contains(strings.ToLower(after[name]), canary) {
					t.Errorf("%s: found\n%s, and before it was there\n%s", name, after[name], before[name])
				}
			}
			if len(after) < 100 {
				t.Errorf("only %d ways", len(after))
			}
			found, x := 0, member.open(t, s.index)
			for name, q := range ways {
				q.Scopes = me.Scopes
				hits, err := x.Search(ctx, q)
				if b, _ := json.Marshal(hits); err != nil || strings.Contains(string(b), canary) {
					found++
				} else if strings.Contains(name, "its word") {
					t.Errorf("%s: its owner does not find it: %s", name, b)
				}
			}
			if found < len(ways)/2 {
				t.Errorf("its owner finds it in %d of %d ways", found, len(ways))
			}
			canaryElsewhere(t, s, places, secret, canary)
		})
	}
}

// hide stores the canary in every way that something private is stored.
func hide(t *testing.T, s *Store, canary, near string) Entry {
	t.Helper()
	ctx, me := t.Context(), Private(owner)
	secret := noted(t, s, me, "my word is "+canary, owner)
	old := noted(t, s, me, "my old word is "+canary+" too", owner)
	must(s.Supersede(ctx, as(owner), old.ID, "no other word than "+canary+" and "+near))(t)
	retired := noted(t, s, me, canary+" was put away", owner)
	noError(t, s.Retire(ctx, as(owner), retired.ID))
	put(t, s, me, onDisk(t, s, me)+"by hand: "+canary+"\n")
	texts(t, s, me)
	lines := fmt.Sprintf(`{"text":"the %s said %s","scope":%q,"ref":"p2","conversation":"c","seq":2,"subject":"Anna","observed_at":"2026-03-01"}
{"text":"%s","scope":%q,"ref":"p3","conversation":"c","seq":3,"subject":"%s","observed_at":"2026-03-01"}`, near, canary, me, canary, me, canary)
	must(newImporter(s).Import(ctx, "private", []byte(lines)))(t)
	noError(t, s.index.Hear(ctx, Turn{Scope: me, Event: "$o", Sender: owner, Text: "remember " + canary + " and the " + near, At: today, Conversation: "c", Seq: 3}))
	return secret
}

func canaryQueries(canary, near string) map[string]Query {
	ways := map[string]Query{}
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for what, text := range map[string]string{
		"its word": canary, "a question for its word": "what is my word " + canary + "?", "its neighbours": "what did the " + near + " say?", "its neighbour": near,
		"who said it": "what did Anna say about the " + near, "its day": "what was said on 1 March 2026", "its beginning": canary[:6] + "*", "syntax": `body:` + canary + ` OR "` + near + `"`,
		"the scope": "private:" + owner + " " + near, "small words": "my word is no other",
	} {
		for how, q := range map[string]Query{
			"": {K: 50}, ", in context": {K: 50, Context: canary + " " + near}, ", messages too": {K: 50, Turns: true}, ", the past too": {K: 50, Past: true},
			", all of it": {Tokens: 100_000, Turns: true, Past: true}, ", of that day": {K: 50, After: day, Before: day.AddDate(0, 1, 0), Turns: true}, ", surely": {K: 50, Floor: .9},
		} {
			q.Text, q.Now = text, today
			ways[what+how] = q
		}
	}
	return ways
}

// canaryElsewhere is what reads entries beside searching.
func canaryElsewhere(t *testing.T, s *Store, places map[string]Access, secret Entry, canary string) {
	t.Helper()
	ctx := t.Context()
	journal := must(s.History(ctx, everything, secret.ID))(t)
	search := func(a Access) any {
		hits, err := s.index.Search(ctx, Query{Text: canary, Scopes: a.Scopes, K: 50, Turns: true, Past: true})
		return []any{hits, err}
	}
	for place, a := range places {
		states := Filter{States: []State{Active, Merged, Superseded, Archived, Forgotten}}
		for name, way := range map[string]func() (any, error){
			"export":     func() (any, error) { return s.List(ctx, a, states) },
			"list":       func() (any, error) { return s.List(ctx, a, Filter{Words: canary}) },
			"prompt":     func() (any, error) { return s.Entries(ctx, a.Scopes...) },
			"find":       func() (any, error) { all, _, err := s.Find(ctx, a, canary); return all, err },
			"find by id": func() (any, error) { all, _, err := s.Find(ctx, a, secret.ID); return all, err },
			"get":        func() (any, error) { return s.Get(ctx, a, secret.ID) },
			"history":    func() (any, error) { return s.History(ctx, a, secret.ID) },
			"undo":       func() (any, error) { return s.Undo(ctx, a, journal[0].Batch) },
			"share":      func() (any, error) { return s.Share(ctx, a, secret.ID) },
			"withdraw":   func() (any, error) { return s.Withdraw(ctx, a, secret.ID) },
			"supersede":  func() (any, error) { return s.Supersede(ctx, a, secret.ID, "x") },
			"retire":     func() (any, error) { return nil, s.Retire(ctx, a, secret.ID) },
			"pin":        func() (any, error) { return nil, s.Pin(ctx, a, secret.ID, true) },
			"forget":     func() (any, error) { return s.Forget(ctx, a, secret.ID) },
			"add": func() (any, error) {
				e, _, err := s.Add(ctx, Entry{Scope: a.Scopes[0], Text: "my word", Source: Assistant}, a.Actor)
				return e, err
			},
		} {
			got, err := way()
			if b, _ := json.Marshal(got); strings.Contains(string(b), canary) || strings.Contains(fmt.Sprint(err), canary) {
				t.Errorf("%s, %s: %s, %v", place, name, b, err)
			}
		}
	}
	if e := must(s.Get(ctx, everything, secret.ID))(t); e.State != Active || e.Pinned || e.Scope != Private(owner) {
		t.Errorf("it was changed from elsewhere: %+v", e)
	}
	// Shared on purpose it is found by all, and no longer once it is taken back.
	must(s.Share(ctx, as(owner), secret.ID))(t)
	for place, a := range places {
		if b, _ := json.Marshal(search(a)); strings.Count(string(b), `"text":"my word is `+canary) != 1 || strings.Count(string(b), canary) != 1 {
			t.Errorf("%s, shared: %s", place, b)
		}
	}
	must(s.Withdraw(ctx, as(owner), secret.ID))(t)
	must(s.Share(ctx, as(owner), secret.ID))(t)
	must(s.Undo(ctx, as(owner), ""))(t)
	for place, a := range places {
		if b, _ := json.Marshal(search(a)); strings.Contains(string(b), canary) {
			t.Errorf("%s, taken back: %s", place, b)
		}
		if b, _ := json.Marshal(must(s.History(ctx, everything, secret.ID))(t)); !strings.Contains(string(b), `"move"`) {
			t.Errorf("the journal: %s", b)
		}
		if _, err := s.History(ctx, a, secret.ID); err == nil {
			t.Errorf("%s: the history can still be read", place)
		}
	}
	sound(t, s)
}
