package memory

import (
	"strings"
	"testing"
)

func TestLike(t *testing.T) {
	var a analyser
	for _, tt := range []struct {
		one, other string
		want       bool
	}{
		{"Anna likes green tea in the morning", "in the morning Anna likes her green tea", true},
		{"The dentist is in Berlin on Friday", "the dentist on Friday is in Berlin", true},
		{"Der Schlüssel liegt unter der Matte", "Die Schlüssel liegen unter der Matte", true},
		{"钥匙在门垫下面", "钥匙就在门垫下面", true},
		{"the door code is 4711", "the door code is 4712", false},
		{"my sister is called Anna", "my sister is called Ben", false},
		{"Anna eats meat and fish", "Anna never eats meat and fish", false},
		{"she doesn't eat meat or fish", "she does eat meat or fish", false},
		{"she doesn’t eat meat or fish", "she does eat meat or fish", false},
		{"Anna likes green tea in the morning", "Ben likes green tea in the morning", false},
		{"Anna likes green tea in the morning", "Anna likes green apples and walks her dog", false},
		{"tea", "tea!", false}, // too little to tell
		{"green tea", "black tea", false},
		{"", "", false},
	} {
		for _, pair := range [][2]string{{tt.one, tt.other}, {tt.other, tt.one}} {
			if got := a.essence(pair[0]).like(a.essence(pair[1])); got != tt.want {
				t.Errorf("%q, %q: %v", pair[0], pair[1], got)
			}
		}
	}
}

// What says nearly the same is kept beside the other, word for word, and says so.
// Holds L14, W15.
func TestNearDuplicatesAreLinked(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	first := noted(t, s, Private(owner), "Anna likes green tea in the morning", owner)
	elsewhere := noted(t, s, Shared, "in the morning Anna likes her green tea", owner)
	next := noted(t, s, Private(owner), "in the morning Anna likes her green tea", owner)
	other := noted(t, s, Private(owner), "in the morning Ben likes his green tea", owner)
	if first.Like != "" || elsewhere.Like != "" || next.Like != first.ID || other.Like != "" {
		t.Errorf("%q, %q, %q, %q", first.Like, elsewhere.Like, next.Like, other.Like)
	}
	if got := texts(t, s, Private(owner)); strings.Count(got, "|") != 2 || !strings.HasPrefix(got, first.Text+"|"+next.Text) {
		t.Errorf("%q", got)
	}
	for _, id := range []string{first.ID, next.ID} {
		all := must(s.History(ctx, as(owner), id))(t)
		if kinds(all) != "add add" || all[0].Entry != first.ID || all[1].After.Like != first.ID {
			t.Errorf("history of %s: %+v", id, all)
		}
	}
	// It is another entry: taken back or forgotten alone.
	if u := must(s.Undo(ctx, as(owner), must(s.History(ctx, as(owner), next.ID))(t)[1].Batch))(t); len(u.Away) != 1 || u.Away[0].ID != next.ID {
		t.Errorf("%+v", u)
	}
	if done := must(s.Forget(ctx, as(owner), first.ID))(t); done.Entries != 1 {
		t.Errorf("%+v", done)
	}
	if again := noted(t, s, Private(owner), "Anna likes her tea green, in the morning", owner); again.Like != "" {
		t.Errorf("linked to %q, which no longer counts", again.Like)
	}
	// Nor to one that a person just took out of the file.
	put(t, s, Private(owner), "# nothing\n")
	if again := noted(t, s, Private(owner), "in the morning Ben likes green tea", owner); again.Like != "" {
		t.Errorf("linked to %q, which was taken out", again.Like)
	}
	sound(t, s)
}
