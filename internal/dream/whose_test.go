package dream

import (
	"testing"
	"time"

	"reverie/internal/memory"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestWhoseItIs: news of somebody's sister or dog never replaces what is known of themselves, though a
// model says so and the words are the same. News of themselves does.
func TestWhoseItIs(t *testing.T) {
	for _, c := range []struct {
		older, newer string
		superseded   int
	}{
		{"Noemi lives in Exeter.", "Noemi lives in Leeds now.", 1},
		{"Noemi takes 20 mg of the drug a day.", "Noemi's dog gets 30 mg of the drug a day.", 0},
		{"Noemi takes 20 mg of the drug a day.", "Noemi's dog now takes 30 mg of the drug a day.", 0},
		{"Noemi lives in Exeter.", "Noemi's sister lives in Leeds now.", 0},
		{"Noemi lives in Exeter.", "Noemi's sister moved to Leeds.", 0},
		{"Noemi wohnt in Jena.", "Noemis Schwester wohnt jetzt in Passau.", 0},
		{"Noemi wohnt in Jena.", "Die Schwester von Noemi wohnt jetzt in Passau.", 0},
		{"Noemi habite à Lyon.", "La sœur de Noemi habite maintenant à Nantes.", 0},
		{"Noemi's sister lives in Leeds.", "Noemi lives in Exeter now.", 0},
	} {
		w := newWorld(t, nil, always("update"))
		for i, text := range []string{c.older, "Anton likes tea.", "Birte likes tea.", c.newer} {
			w.know(memory.Entry{Text: text, Integrity: trust.User, ObservedAt: day0.AddDate(0, i, 0)})
		}
		w.now = time.Now().Add(time.Hour)
		expect.Equal(t, len(w.dream(Options{}).Superseded), c.superseded, "%q by %q", c.older, c.newer)
	}
}

// TestOtherEnd: two texts that differ in their last word alone are two answers, though a model calls them the same.
func TestOtherEnd(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Inge loves gin.", "Inge loves crosswords.", true},
		{"Oma Inge loves gin.", "Oma Inge loves crosswords.", true},
		{"Oma Inge really loves gin.", "Oma Inge really loves crosswords.", true},
		{"Oma Inge loves gin.", "Oma Inge enjoys gin.", false},
		{"Oma Inge adores gin.", "Oma Inge loves a gin.", false},
		{"Oma Inge loves gin.", "Oma Inge loves gin very much.", false},
	} {
		s := signed(c.a, c.b)
		expect.Equal(t, otherEnd(s[0], s[1]), c.want, "%q and %q", c.a, c.b)
	}
}
