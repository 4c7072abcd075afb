package text

import (
	"strings"
)

// Words for dates and times, of all languages together.
var (
	months          = wordNumbers("month", 1)
	ambiguousMonths = foldedSet("doubtful_month")
	beforeMonth     = foldedSet("before_month")
	weekdays        = wordNumbers("weekday", 0)
	relativeDays    = wordNumbers("day_back", 0)
	timeUnits       = units()
	pastWords       = foldedSet("past")
	thisWords       = foldedSet("this")
	agoWords        = foldedSet("ago")
	whenWords       = foldedSet("when")
	whichWords      = foldedSet("which")
	timeWords       = foldedSet("time")
	numberWords     = wordNumbers("number", 1)
)

// wordNumbers maps the words of a list to numbers: the first item is first, the next first+1, ….
func wordNumbers(name string, first int) map[string]int {
	out := map[string]int{}
	for _, language := range Languages() {
		for i, item := range Words(language, name) {
			for w := range strings.FieldsSeq(item) {
				out[foldWord(w)] = first + i
				out[Unaccented(foldWord(w))] = first + i
			}
		}
	}
	return out
}

func foldedSet(name string) map[string]bool {
	out := map[string]bool{}
	for _, w := range All(name) {
		out[foldWord(w)] = true
		out[Unaccented(foldWord(w))] = true
	}
	return out
}

// units maps words for units of time to d, w, m or y.
func units() map[string]byte {
	out := map[string]byte{}
	for _, item := range All("time_unit") {
		unit, forms, _ := strings.Cut(item, "=")
		for w := range strings.FieldsSeq(forms) {
			out[foldWord(w)] = unit[0]
			if w != "año" && w != "años" { // without the tilde it is another word
				out[Unaccented(foldWord(w))] = unit[0]
			}
		}
	}
	return out
}
