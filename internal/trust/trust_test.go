package trust

import (
	"testing"
)

func TestMayRead(t *testing.T) {
	direct := Place{Room: "!d:x", Person: "@a:x", Private: true}
	group := Place{Room: "!g:x", Person: "@a:x"}
	for _, c := range []struct {
		place Place
		of    Readers
		want  bool
	}{
		{direct, PersonReaders("@a:x"), true},
		{direct, PersonReaders("@b:x"), false},
		{direct, RoomReaders("!d:x"), false}, // it was said while others read the room
		{direct, Everybody, true},
		{group, RoomReaders("!g:x"), true},
		{group, RoomReaders("!d:x"), false},
		{group, PersonReaders("@a:x"), false},
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
	for i, want := range []string{"foreign", "guest", "user", "owner"} { // the numbers are stored
		if got := Integrity(i).String(); got != want {
			t.Errorf("%d is %s, not %s", i, got, want)
		}
	}
}

func TestCheckReaders(t *testing.T) {
	for _, good := range []Readers{Everybody, PersonReaders("@a:x"), RoomReaders("!r:x")} {
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

// TestSender: an unproven owner is a user at most, and a person who may not use the assistant is
// foreign.
func TestSender(t *testing.T) {
	allowed := func(user string) bool { return user == "@b:x" }
	for _, c := range []struct {
		user   string
		proven bool
		want   Integrity
	}{{"@a:x", true, Owner}, {"@a:x", false, User}, {"@b:x", true, User}, {"@b:x", false, User}, {"@c:x", true, Foreign}, {"", true, Foreign}} {
		if got := SenderIntegrity(c.user, c.proven, []string{"@a:x"}, allowed); got != c.want {
			t.Errorf("%s, proven %v: %v, want %v", c.user, c.proven, got, c.want)
		}
	}
}
