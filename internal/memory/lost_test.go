package memory

import (
	"strings"
	"testing"
)

// TestUnkept: what is looked for is a word or a number by itself.
func TestUnkept(t *testing.T) {
	for _, tt := range []struct{ old, text, want string }{
		{"10 geese", "10 of them", ""}, {"10 geese", "100 of them", "10"}, {"10 geese", "at 10:30", "10"}, {"10 geese", "all 10.", ""},
		{"-5 degrees", "5 degrees", "-5"}, {"5 degrees", "-5 degrees", "5"}, {"at Jana", "JANA's", ""}, {"geht mit Janas", "von Jana", ""},
		{"with Ann", "with Anna", "ann"}, {"say “so be it”", "say 'so be it'", ""}, {"「山田」さん", "山田さんです", ""},
		{"see https://a.example/x", "see https://a.example/xy", "https://a.example/x"},
	} {
		if got := strings.Join(unkept(tt.old, tt.text), "|"); got != tt.want {
			t.Errorf("%q in %q: %q is lost, want %q", tt.old, tt.text, got, tt.want)
		}
	}
}
