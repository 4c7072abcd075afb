package trust

import (
	"testing"

	"pgregory.net/rapid"
)

func labels() *rapid.Generator[Label] {
	return rapid.Custom(func(t *rapid.T) Label {
		return Label{
			Integrity: rapid.SampledFrom([]Integrity{Foreign, Guest, User, Owner}).Draw(t, "integrity"),
			Readers:   rapid.SampledFrom([]Readers{Nobody, Person("@a:x"), Person("@b:x"), Room("!r:x"), Room("!s:x"), Everybody}).Draw(t, "readers"),
		}
	})
}

func TestMeetIsALattice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := labels().Draw(t, "a"), labels().Draw(t, "b"), labels().Draw(t, "c")
		if a.Meet(a) != a {
			t.Fatalf("%v with itself is %v", a, a.Meet(a))
		}
		if a.Meet(b) != b.Meet(a) {
			t.Fatalf("the order matters: %v and %v", a.Meet(b), b.Meet(a))
		}
		if a.Meet(b).Meet(c) != a.Meet(b.Meet(c)) {
			t.Fatalf("the grouping matters for %v, %v, %v", a, b, c)
		}
		if top := (Label{Owner, Everybody}); a.Meet(top) != a {
			t.Fatalf("%v with the top is %v", a, a.Meet(top))
		}
		if m := a.Meet(b); m.Integrity > a.Integrity || m.Integrity > b.Integrity {
			t.Fatalf("the meet %v is trusted more than %v or %v", m, a, b)
		}
	})
}

// Nothing that is made of a text may be read where the text may not.
func TestMeetNeverWidensReaders(t *testing.T) {
	places := []Place{{Room: "!r:x", Person: "@a:x"}, {Room: "!r:x", Person: "@a:x", Private: true}, {Room: "!s:x", Person: "@b:x"}, {Room: "!s:x", Person: "@b:x", Private: true}}
	rapid.Check(t, func(t *rapid.T) {
		a, b := labels().Draw(t, "a"), labels().Draw(t, "b")
		p := rapid.SampledFrom(places).Draw(t, "place")
		if p.MayRead(a.Meet(b).Readers) && !(p.MayRead(a.Readers) && p.MayRead(b.Readers)) {
			t.Fatalf("%v reads the meet of %v and %v, but not both", p, a, b)
		}
	})
}

func TestMayRead(t *testing.T) {
	direct := Place{Room: "!d:x", Person: "@a:x", Private: true}
	group := Place{Room: "!g:x", Person: "@a:x"}
	for _, c := range []struct {
		place Place
		of    Readers
		want  bool
	}{
		{direct, Person("@a:x"), true},
		{direct, Person("@b:x"), false},
		{direct, Room("!d:x"), false}, // it was said while others read the room
		{direct, Everybody, true},
		{group, Room("!g:x"), true},
		{group, Room("!d:x"), false},
		{group, Person("@a:x"), false},
		{group, Everybody, true},
		{group, Nobody, false},
		{direct, "private:", false},
	} {
		if got := c.place.MayRead(c.of); got != c.want {
			t.Errorf("%+v reads %q: %v, want %v", c.place, c.of, got, c.want)
		}
	}
	if (Label{}).Integrity != Foreign {
		t.Error("a text without a label is not foreign")
	}
}

func TestCheckReaders(t *testing.T) {
	for _, good := range []Readers{Everybody, Person("@a:x"), Room("!r:x")} {
		if err := good.Check(); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []Readers{Nobody, "private:", "room:", "everybody"} {
		if bad.Check() == nil {
			t.Errorf("%q passes", bad)
		}
	}
}
