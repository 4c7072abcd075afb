package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/test/expect"
)

// said stores messages of owner, by day of 2026.
func said(t *testing.T, s *Store, scope Scope, byDay map[string]string) {
	t.Helper()
	for day, text := range byDay {
		at := expect.Must(time.Parse(time.DateOnly, "2026-"+day))(t)
		expect.OK(t, s.IndexTurns(t.Context(), Turn{Scope: scope, Event: "$" + day, Sender: owner, At: at, Text: text}))
	}
}

// TestStandingWishes: a wish is found for messages that share no word with it, those of the topic
// first. Only wishes are.
func TestStandingWishes(t *testing.T) {
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: "fts5"})
	me := Private(owner)
	said(t, s, me, map[string]string{
		"01-01": "I can't stand big hotels.", "01-02": "From now on give me prices in euros.", "01-03": "The hotel in Lisbon was full.",
		"01-04": "Which hotel do I like?",
	})
	added(t, s, Entry{Scope: me, Text: "ada would take a train where there is one", Kind: Preference, Source: Harvest}, owner)
	noted(t, s, me, "ada lives in Kiel", owner)
	ask := func(text string) (all []string) {
		for _, h := range expect.Must(s.Search(t.Context(), Query{Text: text, Scopes: []Scope{me}, Turns: true, Wishes: true, K: 10}))(t) {
			all = append(all, h.Text())
		}
		return all
	}
	expect.Len(t, ask("What does dinner cost?"), 3, "all")
	all := ask("Which hotel is the best in Porto?")
	expect.False(t, slices.Index(all, "I can't stand big hotels.") > slices.Index(all, "From now on give me prices in euros."), "%q", all)
	expect.Len(t, found(t, s, "What does dinner cost?", me), 0, "found without asking for wishes")
}

// TestAnswersCountLess: what the bot said comes behind what a person said, in half the words.
func TestAnswersCountLess(t *testing.T) {
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: "fts5"})
	me := Private(owner)
	for i := range 120 {
		answer := Turn{Scope: me, Event: fmt.Sprint("$a", i), At: today, Text: "The ferry from Kiel to Oslo leaves every day at two."}
		expect.OK(t, s.IndexTurns(t.Context(), answer))
	}
	said(t, s, me, map[string]string{"01-01": "I took the ferry with Jana."})
	all := found(t, s, "When did I take the ferry from Kiel to Oslo?", me)
	expect.Equal(t, all[0], "I took the ferry with Jana.")
	expect.Equal(t, strings.HasPrefix(all[1], "The ferry"), true, all[1])
}

// TestOffsetFromWhatIsFound: "two weeks before the move" finds what was said then.
func TestOffsetFromWhatIsFound(t *testing.T) {
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: "fts5"})
	me := Private(owner)
	said(t, s, me, map[string]string{
		"03-15": "The move to Kiel is done, the van is empty.", "03-02": "Jana broke her arm on the stairs.", "01-20": "Jana sold the piano.",
		"05-04": "The garden is dry.",
	})
	all := found(t, s, "What happened two weeks before the move?", me)[:2]
	expect.Equal(t, slices.Contains(all, "Jana broke her arm on the stairs."), true, all)
}

// TestForgottenAnswers: forgetting a fact removes the answers of the bot that reword it.
func TestForgottenAnswers(t *testing.T) {
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: "fts5"})
	me := Private(owner)
	e := noted(t, s, me, "the gate code is 4711", owner)
	expect.OK(t, s.IndexTurns(t.Context(), Turn{Scope: me, Event: "$1", At: today, Text: "Use 4711 at the gate, as before."}))
	expect.Len(t, found(t, s, "4711", me), 2, "found before")
	_, err := s.Forget(t.Context(), Access{Actor: owner, All: true}, e.ID)
	expect.OK(t, err)
	expect.Len(t, found(t, s, "4711", me), 0, "found after")
}

// TestUpdatedShowsBoth: an updated entry comes with what held before, dated; one that a person corrected by
// hand does not.
func TestUpdatedShowsBoth(t *testing.T) {
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: "fts5"})
	me := Private(owner)
	old := noted(t, s, me, "ada lives in Bonn", owner)
	next := expect.Must(s.Supersede(t.Context(), as(owner), old.ID, "ada lives in Kiel"))(t)
	hits := expect.Must(s.Search(t.Context(), Query{Text: "Where does ada live?", Scopes: []Scope{me}}))(t)
	expect.Has(t, hits[0].Line(time.UTC, nil), "ada lives in Kiel (before that, ", ": ada lives in Bonn)")
	_, err := s.db.Exec(`UPDATE memory SET source = 'file' WHERE id = ?`, next.ID)
	expect.OK(t, err)
	hits = expect.Must(s.Search(t.Context(), Query{Text: "Where does ada live?", Scopes: []Scope{me}}))(t)
	expect.Lacks(t, hits[0].Line(time.UTC, nil), "Bonn")
}
