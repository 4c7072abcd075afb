package i18n

import "testing"

// TestSentences: between two sentences stands a blank, but not where the writing has none; what is empty is none.
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
