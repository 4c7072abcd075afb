package dream

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"reverie/internal/memory"
	"reverie/internal/trust"
)

// dentists is what no table of questions knows of: each person has a new one.
func dentists() []fact {
	var out []fact
	for i, who := range []string{"Anna", "Ben", "Carla", "David", "Elif", "Farid", "Greta", "Hugo"} {
		first, second := []string{"Adler", "Bosse", "Conrad"}[i%3], []string{"Ebert", "Falk", "Gruber"}[i%3]
		out = append(out,
			fact{key: who + " dentist", old: true, at: i, texts: []string{"For bad teeth " + who + " sees " + first + "."}},
			fact{key: who + " dentist", at: 50 + i, texts: []string{who + " goes to " + second + " with bad teeth these days."}},
			fact{key: who + " hobby", at: 20 + i, texts: []string{who + " collects stamps in the evening."}},
			fact{key: who + " pet", at: 30 + i, texts: []string{who + " walks a small dog at noon."}},
		)
	}
	return out
}

// sitters are about people without a name, in two languages.
func sitters() []fact {
	out := dentists()
	for i, who := range []string{"The babysitter", "Our landlord", "My cousin Lara", "Onkel Bert"} {
		dish, alarm := []string{"mushrooms", "olives", "fish", "nuts"}[i], []string{"6:15", "6:45", "7:15", "7:45"}[i]
		out = append(out,
			fact{key: who + dish, old: true, at: i, texts: []string{who + " likes " + dish + "."}},
			fact{key: who + dish, at: 40 + i, texts: []string{who + " hat genug von " + dish + "."}},
			fact{key: who + alarm, at: 60 + i, texts: []string{who + " steht um " + alarm + " auf."}},
		)
	}
	return out
}

// TestCorrections: what contradicts by its meaning only is replaced where a model and the
// structure say so; whatever a model says, nothing else is.
// Holds P5.
func TestCorrections(t *testing.T) {
	dir := prepare(t, sitters())
	for name, c := range map[string]struct {
		judge func(*world, string) (string, error)
		want  int
	}{
		"perfect": {perfect, 8}, "always update": {always("update"), 0}, "always the newer": {always("keep_second"), 0}, "always unsure": {always("unsure"), 0}, "always the same": {always("duplicate"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := openWorld(t, dir, sitters(), c.judge)
			got := 0
			for range 4 {
				for _, s := range w.dream(Options{Now: true}).Superseded {
					if got++; !w.of[s.Text].old {
						t.Errorf("%q holds", s.Text)
					}
				}
			}
			if got != c.want {
				t.Errorf("%d superseded", got)
			}
			for pair, n := range w.asked {
				if n > 1 {
					t.Errorf("asked %d times: %s", n, pair)
				}
			}
		})
	}
}

// TestOneWrongWord: a model that is right but for one pair costs nothing that holds: that pair is
// a question. One whose structure agrees is replaced.
func TestOneWrongWord(t *testing.T) {
	for _, c := range []struct {
		older, newer string
		others       []string
		want         bool
	}{
		{"For bad teeth Anna sees Adler.", "Anna goes to Bosse with bad teeth these days.", nil, true},
		{"Anna likes olives.", "Anna has had enough of olives.", nil, false}, // no word of change
		{"Remind me on Wednesdays to water the ferns", "Remind me on Sundays to water the orchid", nil, false},
		{"The code of the shed is 7204.", "The code of the garage is now 7205.", nil, false},
		{"Tim gets 5 € on Fridays.", "Ida gets 8 € on Fridays now.", nil, false},
		{"He lives in Bath.", "She lives in Derby now.", nil, false},
		{"Sue lives in Bath.", "I live in Derby now.", nil, false},
		{"Andrea wohnt in Kiel.", "Andreas wohnt jetzt in Ulm.", []string{"Andreas kocht gern."}, false},
		{"Anna lives in Bath.", "Anna has moved to Derby.", nil, true},
		{"Anna vive a Pisa.", "Anna si è trasferita da Pisa a Bari.", nil, true},
		{"Anna works for Siemens.", "Anna also works for Bosch.", nil, false},
		{"Anna lives in Bath.", "Anna wants to live in Rome now.", nil, false},
		{"Hazel is older than Owen.", "Owen isn't older than Hazel.", nil, false},
		{"Desmond leads the choir.", "Yasmin leads the choir now.", nil, false}, // a role that changes hands
		{"Fr. Lorenz ist gegen Nüsse allergisch.", "Hr. Lorenz ist nicht mehr gegen Nüsse allergisch.", []string{"Fr. Albers mag Tee.", "Hr. Brandt mag Tee."}, false},
		{"Alva hilft beim Sommerfest: abgesagt.", "Alva hilft beim Flohmarkt: abgesagt.", nil, false},
		{"my sister Fine liebt Rummikub nicht mehr", "Geburtstag von my sister Fine ist 5.4.", nil, false},
		{"Our landlord doesn't eat caraway.", "Our landlord has moved to Ulm, and our landlord eats caraway.", nil, false},
		{"For bad teeth Anna sees Adler.", "Perhaps Anna goes to Bosse with bad teeth these days.", nil, false},
		{"For bad teeth Anna sees Adler.", "Anna goes to Bosse with bad teeth these days, too.", nil, false},
		{"Anna walks a small dog.", "Anna goes to Bosse with bad teeth these days.", nil, false},
		{"Anna walks a small dog in the park.", "Anna's small cat sleeps in the park these days.", []string{"Anna's small cat sleeps on the sofa in the park."}, false}, // another text is more like it
	} {
		facts := []fact{{key: "older", at: 1, texts: []string{c.older}}, {key: "newer", at: 90, texts: []string{c.newer}}, {key: "Anna", at: 20, texts: []string{"Anna collects stamps in the evening."}}}
		for _, text := range c.others {
			facts = append(facts, fact{key: text, at: 10, texts: []string{text}})
		}
		w := newWorld(t, facts, func(w *world, prompt string) (string, error) {
			return answerAll(prompt, func(a, b string) string {
				if a == c.older && b == c.newer {
					return "keep_second"
				}
				return "neither"
			}), nil
		})
		r := w.dream(Options{})
		if n := w.asked[min(c.older, c.newer)+"|"+max(c.older, c.newer)]; n != 1 || (len(r.Superseded) == 1) != c.want || len(r.Superseded)+len(r.Questions) != 1 {
			t.Errorf("%q after %q: asked %d times, %+v, %+v", c.newer, c.older, n, r.Superseded, r.Questions)
		}
	}
}

// TestOneReplacesOne: a text that has replaced another replaces no more, nor does one that says the same.
func TestOneReplacesOne(t *testing.T) {
	w := newWorld(t, []fact{
		{key: "dentist", old: true, at: 1, texts: []string{"For bad teeth Anna sees Adler."}},
		{key: "dentist", at: 50, texts: []string{"Anna goes to Bosse with bad teeth these days."}},
	}, perfect)
	if r := w.dream(Options{Phases: Phases}); len(r.Superseded) != 1 { // so that the next one looks at everything again
		t.Fatalf("%+v", r)
	}
	more := fact{key: "dentist", texts: []string{"With bad teeth Anna rings her aunt."}}
	w.of[more.texts[0]] = &more
	if _, err := (&memory.Importer{Store: w.store, Scope: memory.Private(owner), Now: func() time.Time { return w.now }}).Import(t.Context(), owner,
		fmt.Appendf(nil, `{"text":%q,"source":"harvest","observed_at":"2026-01-03T09:00:00Z"}`, more.texts[0])); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(24 * time.Hour)
	if r := w.dream(Options{}); len(r.Superseded) != 0 || len(r.Questions) != 1 {
		t.Errorf("%+v", r)
	}
}

// candidates are the texts that the last of texts may correct, those most like it first.
func candidates(texts ...string) (out []string) {
	s := signed(texts...)
	n := night{names: *s[0].names, gone: map[string]bool{}}
	for i, x := range s {
		x.ObservedAt, x.Integrity = day0.AddDate(0, 0, i), trust.User
	}
	c, _ := n.topics(s).related(len(s) - 1)
	for _, p := range c {
		out = append(out, p.a.Text)
	}
	return out
}

// TestCandidates: what a text may correct is found in lower case, in another language and in a
// script without spaces.
func TestCandidates(t *testing.T) {
	for _, c := range []struct{ texts, want []string }{
		{[]string{"samir's bday is the 3rd of may", "samir plays padel", "samir rides a trek", "zoe likes olives", "oops samir's birthday is actually the 30th of june"},
			[]string{"samir plays padel", "samir rides a trek", "samir's bday is the 3rd of may"}},
		{[]string{"la vicina frequenta il coro.", "la vicina ha lasciato il coro."}, []string{"la vicina frequenta il coro."}},
		{[]string{"A il commercialista piace il baccalà.", "A il commercialista il baccalà non piace più."}, []string{"A il commercialista piace il baccalà."}},
	} {
		if got := slices.Sorted(slices.Values(candidates(c.texts...))); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.texts, got)
		}
	}
	if got := candidates("佐藤のロッカーの暗証番号は3008です", "鈴木は教師です", "高橋は京都に住んでいます", "鈴木の玄関の暗証番号は4711です"); got[0] != "鈴木は教師です" {
		t.Errorf("what is about the same comes first: %q", got)
	}
}

// TestTwoThings: a text that says two things stays whatever is newer, but for one that
// says what came to an end and what is so instead.
func TestTwoThings(t *testing.T) {
	for _, c := range []struct {
		text             string
		compound, turned bool
	}{
		{"Anna sold the old car and drives a Volvo.", true, true},
		{"Anna hat sich von Ben getrennt und ist jetzt mit Carl zusammen.", true, true},
		{"Anna a vendu sa voiture et conduit une Clio.", true, true},
		{"Anna ha cambiado de oficio y trabaja de pintora.", true, true},
		{"Anna sold the car and Ben drives a Volvo.", true, false},
		{"Anna left the choir, and Anna likes tea.", true, false},
		{"Anna left the choir. She drives a Volvo and likes tea.", true, false},
		{"Anna lives in Oslo and likes tea.", true, false},
		{"Anna likes tea and sold the car.", true, false},
		{"Anna sold the car and quit the choir.", true, false},
		{"Das Treffen wurde verschoben und findet am 4. August statt.", true, true},
		{"Anna handed in the old laptop and works on a MacBook.", true, true},
		{"Anna ist mit dem Auto unterwegs, und zwar fährt Anna einen Polo.", false, false},
		{"Anna: Anschrift: Kirchstr. 2a", false, false},
		{"Anna lives in Kirchdorf. 2 dogs live there.", true, false},
		{"Fr. Albers wohnt in Ulm.", false, false},
		{"Tel. Tochter von Hr. Brandt, Zi. 12: 4711", false, false},
		{"Fam. Celik kommt am 3. Okt. 2024.", false, false},
		{"Prof. Dr. med. Roth wohnt in Ulm.", false, false},
		{"王伟不喝酒，另外王伟住在上海", true, false},
		{"田中さんは教師です、それと車はフィットです", true, false},
		{"王伟把大众卖了，现在开丰田", false, false},
		{"Fr. Albers wohnt in Ulm. Hr. Albers wohnt in Köln.", true, false},
	} {
		if s := signed(c.text)[0]; s.compound != c.compound || s.turned != c.turned {
			t.Errorf("%q: %v, %v", c.text, s.compound, s.turned)
		}
	}
}

// TestWhoseWord: what a dream put together holds over what was heard before it; what a
// person said is asked about.
func TestWhoseWord(t *testing.T) {
	for _, c := range []struct {
		old, later memory.Source
		want       bool
	}{{memory.Harvest, memory.DreamingMerge, true}, {memory.UserExplicit, memory.Harvest, false}, {memory.FromFile, memory.DreamingMerge, false}, {memory.UserExplicit, memory.FromFile, true}} {
		w := newWorld(t, []fact{
			{key: "home", old: true, at: 1, by: c.old, texts: []string{"Anna lives in Berlin."}},
			{key: "home", at: 90, by: c.later, texts: []string{"Anna has moved to Hamburg."}}}, perfect)
		r := w.dream(Options{})
		if (len(r.Superseded) == 1) != c.want || (len(r.Questions) == 0) != c.want {
			t.Errorf("%s after %s: %+v", c.later, c.old, r)
		}
	}
}
