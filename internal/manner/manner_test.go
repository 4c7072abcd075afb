package manner

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

const anna = "@anna:example.org"

var start = time.Date(2026, 11, 3, 9, 0, 0, 0, time.UTC)

// TestLines: what holds after messages, and some days later. A message is "DAY EVENT: TEXT".
func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		said  string
		after int // days
		want  string
	}{
		"a wish":               {"0 $1: answer shorter", 0, "length short"},
		"a wish that fades":    {"0 $1: answer shorter", 111, "length short"},
		"a faded wish":         {"0 $1: answer shorter", 113, ""},
		"a wish said twice":    {"0 $1: answer shorter|20 $2: shorter please", 220, "length short"},
		"a contrary wish":      {"0 $1: answer shorter|1 $2: longer again", 1, "length long"},
		"an old edited wish":   {"5 $2: longer answers|0 $1: answer shorter", 5, "length long"},
		"an edited wish":       {"0 $1: answer shorter|0 $1: answer at length", 0, "length long"},
		"no wish any more":     {"0 $1: answer shorter|0 $1: Answer the phone.", 0, ""},
		"two habits":           {"0 $1: Hast du Zeit?|0 $2: Kannst du das?", 0, ""},
		"one message, thrice":  {"0 $1: Hast du Zeit?|0 $1: Hast du Zeit?|0 $1: Hast du Zeit?", 0, ""},
		"three habits":         {"0 $1: Hast du Zeit?|0 $2: Kannst du das?|0 $3: Bist du da?", 0, "address familiar"},
		"a contrary habit":     {"0 $1: Hast du Zeit?|0 $2: Kannst du das?|0 $3: Bist du da?|0 $4: Haben Sie Zeit?", 0, ""},
		"a wish before habits": {"0 $0: Sie bitte|0 $1: Hast du Zeit?|0 $2: Kannst du das?|0 $3: Bist du da?", 0, "address formal"},
		"a habit, wished away": {"0 $1: Hast du Zeit?|0 $2: Kannst du das?|0 $3: Bist du da?|0 $4: Sie bitte", 0, "address formal"},
		"two phrases":          {"0 $1: don't say 'well'|0 $2: don't say 'sure'", 0, "not_say sure, not_say well"},
		"code":                 {"0 $1: ```\nno lists\n```", 0, ""},
		"a quote":              {"0 $1: > no lists\nno lists", 0, ""},
	} {
		s := Store{expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)}
		for m := range strings.SplitSeq(c.said, "|") {
			var day int
			head, text, _ := strings.Cut(m, ": ")
			var event string
			expect.Must(fmt.Sscan(head, &day, &event))(t)
			expect.OK(t, s.Observe(t.Context(), s.DB, Said{event, anna, trust.PersonReaders(anna), true, text,
				start.AddDate(0, 0, day)}))
		}
		var got []string
		for _, l := range expect.Must(s.Lines(t.Context(), anna, start.AddDate(0, 0, c.after)))(t) {
			got = append(got, l.Key+" "+l.Value)
		}
		expect.Equal(t, strings.Join(got, ", "), c.want, name)
		expect.OK(t, s.DB.Close())
	}
}

// TestNotTheirs: text of less trust, of groups and of others is not observed.
func TestNotTheirs(t *testing.T) {
	s := Store{expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)}
	for i, l := range []trust.Label{
		{Integrity: trust.Guest, Readers: trust.PersonReaders(anna)}, {Integrity: trust.User, Readers: trust.RoomReaders("!r")},
		{Integrity: trust.Owner, Readers: trust.PersonReaders("@eve:example.org")}, {Integrity: trust.Owner}, {},
	} {
		expect.OK(t, s.Observe(t.Context(), s.DB, Said{fmt.Sprint("$", i), anna, l.Readers, l.Integrity >= trust.User, "no lists", start}))
	}
	expect.Equal(t, expect.Must(store.Value[int](t.Context(), s.DB, `SELECT count(*) FROM manner`))(t), 0)
}

// TestBounds: there are at most 10 lines and 20 observations of a kind. A forgotten text takes its observation along.
func TestBounds(t *testing.T) {
	s := Store{expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)}
	own := trust.PersonReaders(anna)
	for i := range 30 {
		text := fmt.Sprintf("Don't say 'word %c'", 'a'+i%26)
		expect.OK(t, s.Observe(t.Context(), s.DB, Said{fmt.Sprint("$", i), anna, own, true, text, start.Add(time.Duration(i) * time.Hour)}))
	}
	lines := expect.Must(s.Lines(t.Context(), anna, start))(t)
	expect.Equal(t, len(lines), 10)
	expect.Equal(t, expect.Must(store.Value[int](t.Context(), s.DB, `SELECT count(*) FROM manner WHERE key = 'not_say'`))(t), 20)
	expect.OK(t, ForgetQuoting(t.Context(), s.DB, []string{"", "word z", "nothing"}))
	expect.Equal(t, expect.Must(store.Value[int](t.Context(), s.DB, `SELECT count(*) FROM manner WHERE value LIKE '%z'`))(t), 0)
	expect.Equal(t, expect.Must(store.Value[int](t.Context(), s.DB, `SELECT count(*) FROM manner WHERE key = 'not_say'`))(t), 19)
	expect.Equal(t, len(expect.Must(s.Lines(t.Context(), "@eve:example.org", start))(t)), 0)
}
