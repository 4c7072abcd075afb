package i18n

import "testing"

// TestSentences: sentences are joined by a space, but not in scripts without spaces; empty ones are
// left out.
// Holds M69.
func TestSentences(t *testing.T) {
	for want, each := range map[string][]string{
		"One. Two.": {"One.", "", "Two."}, "一。二。": {"一。", "二。"}, "一？二": {"一？", "二"}, "一！二": {"一！", "二"}, "一 (1) 二。": {"一 (1)", "二。"}, "Two.": {"", "Two.", ""}, "": {"", ""},
	} {
		if got := Sentences(each...); got != want {
			t.Errorf("%q became %q, want %q", each, got, want)
		}
	}
}
