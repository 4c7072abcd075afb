package memory

import (
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"Ada's sister Jana lives in Brno since 3 May 2019.":           "2019|3|ada|brno|jana|may",
		"The PIN is 4711, code A-12/b, call +49 30 1234-56 at 17:30.": "+49|1234-56|17:30|30|4711|a-12/b|pin",
		"write to jana@example.org or see https://a.example/x?y=1.":   "https://a.example/x?y=1|jana@example.org",
		"@me:example.org uses an iPhone and C++":                      "@me:example.org|c++|iphone",
		"Er sagt „nie wieder“, und es sind −5 °C.":                    "-5|nie wieder",
		"彼は「山田」と言った 12 回":                                             "12|山田",
		"likes tea":                                                   "",
		"I'm here, and I may go. We go too. The end.":                 "",
		"10–12 Uhr, dann 10-12 Uhr":                                   "10-12|uhr",
		"Jana und Jana's Hund":                                        "hund|jana",
		"2026-11-21 is not 2026-11-22, and v1.2 is not 1.2":           "1.2|2026-11-21|2026-11-22|v1.2",
	} {
		if got := strings.Join(tokens(text), "|"); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

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
