package text

import (
	"strings"
	"testing"
)

func TestProtected(t *testing.T) {
	for _, c := range []struct {
		from, to string
		lost     bool
	}{
		{"code 4711", "the code is 4711", false}, {"code 4711", "the code is 4712", true}, {"code 4711", "code 47110", true},
		{"it weighs 5 kg", "it weighs 5kg", false}, {"it weighs 5 kg", "it weighs 5 g", true}, {"-5 degrees", "5 degrees", true},
		{"$5", "€5", true}, {"5 %", "5%", false}, {"at 17:30", "at 17:31", true}, {"on 2026-05-08", "on 2026-05-09", true},
		{"see https://a.example/x", "see https://a.example/y", true}, {"write to anna@a.example", "write to anna@b.example", true},
		{"Anna came", "anna came", false}, {"Anna came", "Ben came", true}, {"Anna's car", "the car of Anna", false},
		{`she said "never mind"`, `she said “never mind”`, false}, {`she said "never mind"`, `she said "mind"`, true},
		{"password Tiger7", "password tiger7", true}, {"likes C#", "likes C", true}, {"das Haus in Köln", "das haus in köln", false},
	} {
		if lost := LostProtected(c.from, c.to); len(lost) > 0 != c.lost {
			t.Errorf("%q to %q loses %q", c.from, c.to, lost)
		}
	}
}

// TestMissing: what is only shown for another text may take Anna for Annas, and nothing else.
func TestMissing(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"10 geese", "10 of them", ""}, {"10 geese", "100 of them", "10"}, {"10 geese", "at 10:30", "10"},
		{"it has -5 degrees", "it has 5 degrees", "-5"}, {"at Jana", "JANA's", ""}, {"geht mit Janas", "von Jana", ""}, {"geht mit Jana", "mit Janas Bruder", ""},
		{"with Ann", "with Anna", "ann"}, {"Bus 5s", "Bus 5", "5s"}, {"see https://a.example/x", "see https://a.example/xy", "a.example/x|https://a.example/x"},
	} {
		if got := strings.Join(Missing(tt.from, tt.to), "|"); got != tt.want {
			t.Errorf("%q in %q: %q is missing, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}
