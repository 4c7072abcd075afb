package memory

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestForgottenInOtherWords: what is to be forgotten is not found in messages that
// say it in other words, by words or by meaning; what says something else is.
func TestForgottenInOtherWords(t *testing.T) {
	for _, tt := range []struct {
		fact        string
		same, other []string
	}{
		{"the door code is HERON-4711", []string{"press heron and then 4711 to get in", "was it 4711, heron?"}, []string{"the door is green", "the code of the shed is 4712", "a heron sat there"}},
		{"Anna is allergic to peanuts", []string{"peanuts again! you know how allergic Anna is"}, []string{"Anna sells peanuts", "Ben is allergic to peanuts", "Anna sings"}},
		{"my sister Clara collects old stamps", []string{"stamps, old ones: Clara collects them"}, []string{"Clara sings in the choir", "the post sells stamps"}},
		{"ich habe Diabetes und spritze Insulin", []string{"Insulin spritzen muss ich wegen der Diabetes"}, []string{"Diabetes ist häufig", "das Insulin ist teuer"}},
	} {
		dir := t.TempDir()
		e := &wordEmbedder{name: "words", dim: 300}
		s := openWith(t, Config{Dir: dir, Owner: owner, Backend: LocalVector, Vectors: nil})
		v := openVectors(t, s.db, e)
		s.finder, s.vectors = OpenHybrid(s.index, v), v
		me, theirs := Private(owner), Private(guest)
		for i, text := range tt.same {
			heardFrom(t, s, me, "a", 10*i, text)
			heardFrom(t, s, theirs, "b", 10*i, text)
		}
		for i, text := range tt.other {
			heardFrom(t, s, me, "a", 10*i+5, text)
		}
		complete(t, v)
		question := Query{Text: tt.fact + " " + strings.Join(tt.same, " "), Scopes: []Scope{me}, K: 50, Turns: true}
		if got := turnTexts(t, s, question); len(got) != len(tt.same)+len(tt.other) {
			t.Fatalf("%s: before, %q is found", tt.fact, got)
		}
		fact := noted(t, s, me, tt.fact, owner)
		done := must(s.Forget(t.Context(), as(owner), fact.ID))(t)
		if done.Unfound != len(tt.same) {
			t.Errorf("%s: %d messages said to be found no more, want %d", tt.fact, done.Unfound, len(tt.same))
		}
		for i, text := range tt.same { // as when the conversation is heard again
			heardFrom(t, s, me, "a", 10*i, text)
		}
		complete(t, v)
		got := turnTexts(t, s, question)
		if len(got) != len(tt.other) {
			t.Errorf("%s: afterwards %q is found", tt.fact, got)
		}
		for _, text := range tt.same {
			if strings.Contains(strings.Join(got, "|"), text) {
				t.Errorf("%s: %q is found", tt.fact, text)
			}
		}
		question.Scopes = []Scope{theirs}
		if got := turnTexts(t, s, question); len(got) != len(tt.same) {
			t.Errorf("%s: of another's conversation %q is found", tt.fact, got)
		}
	}
}

func heardFrom(t *testing.T, s *Store, scope Scope, talk string, seq int, text string) {
	t.Helper()
	turn := Turn{Scope: scope, Event: fmt.Sprint("$", talk, seq), Sender: "@x:example.org", At: today.Add(time.Duration(seq) * time.Minute), Conversation: talk, Seq: seq + 1, Text: text}
	noError(t, s.Hear(t.Context(), turn))
}

func turnTexts(t *testing.T, s *Store, q Query) []string {
	t.Helper()
	hits := must(s.Search(context.Background(), q))(t)
	var out []string
	for _, h := range hits {
		if h.Turn != nil {
			out = append(out, h.Turn.Text)
		}
	}
	return out
}
