// Package manner notices how a person likes to be answered. It counts wishes and habits in the
// person's own messages, without a model, and forgets them after a while.
//
// It learns only from what a person writes in the direct chat with the assistant: not from quotes,
// files, polls, groups or other people. The phrases that it understands are in data/words: few and sure
// ones, because it is better to miss a wish than to learn a wrong one.
package manner

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// Keys whose value is not one of a list: the code of a language, and a phrase, which may be several.
const (
	Language = "language"
	NotSay   = "not_say"
)

// rules are the other lines for the model, by key and value. Small models follow what is concrete and positive.
var rules = map[string]string{
	"length short":     "Answer in one to three sentences; more when asked.",
	"length long":      "Answer in full: the result, the reasons, an example.",
	"address familiar": "Use the familiar address (du, tu).",
	"address formal":   "Use the polite address (Sie, vous, usted, Lei).",
	"emoji none":       "Use words only, no emoji.",
	"emoji some":       "Emoji are welcome, one or two in an answer.",
	"lists none":       "Write in running text, without lists.",
	"lists some":       "Use lists where there are several points.",
}

const (
	halfLife  = 14      // days, for each time that something was noticed; a wish in words counts twice
	leastKept = 1.0 / 8 // a lower weight is forgotten
	leastSeen = 3       // times that a habit must be seen
	mostLines = 10      // of one person
	mostRows  = 20      // of one person and key
	mostQuote = 80      // characters
)

// Store keeps what was noticed, in the table manner. The zero value notices nothing.
type Store struct{ DB *store.DB }

// Said is a message of a person, without its quotes.
type Said struct {
	Event, Person string
	Readers       trust.Readers
	Allowed       bool // its words may be learned from
	Text          string
	At            time.Time
}

// Observe counts what a message shows, in place of what an earlier wording showed.
func (s Store) Observe(ctx context.Context, db store.DBTX, m Said) error {
	if s.DB == nil {
		return nil
	}
	_, err := db.ExecContext(ctx, `DELETE FROM manner WHERE event = ?`, m.Event)
	if quoteLine().MatchString(m.Text) {
		return store.Wrap(err, "manner: observe")
	}
	m.Text = code().ReplaceAllString(m.Text, "")
	for _, f := range append(wishesIn(m.Text), habitsIn(m.Text)...) {
		if err == nil {
			err = s.add(ctx, db, m, f)
		}
	}
	return store.Wrap(err, "manner: observe")
}

// ObserveTooLong counts that the person asked for another answer, by m, right after a long one.
func (s Store) ObserveTooLong(ctx context.Context, m Said) error {
	return store.Wrap(s.add(ctx, s.DB, m, finding{"length", "short", false}), "manner: observe")
}

// add stores a finding of a message in a direct chat. A wish replaces its contraries, a habit only habits.
func (s Store) add(ctx context.Context, db store.DBTX, m Said, f finding) error {
	if s.DB == nil || m.Person == "" || m.Readers.Person() != m.Person || !m.Allowed {
		return nil
	}
	for _, statement := range []string{
		`DELETE FROM manner WHERE person = ?1 AND key = ?2 AND value <> ?3 AND key <> 'not_say' AND at <= ?5 AND said <= ?4`,
		`INSERT INTO manner (person, key, value, said, at, event, quote) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
			WHERE ?2 = 'not_say' OR NOT EXISTS (SELECT 1 FROM manner WHERE person = ?1 AND key = ?2 AND value <> ?3)
			ON CONFLICT DO NOTHING`,
		`DELETE FROM manner WHERE person = ?1 AND key = ?2 AND (event, value) NOT IN
			(SELECT event, value FROM manner WHERE person = ?1 AND key = ?2 ORDER BY said DESC, at DESC LIMIT ?8)`,
	} {
		_, err := db.ExecContext(ctx, statement, m.Person, f.key, f.value, f.said, m.At.Unix(), m.Event,
			text.Cut(strings.Join(strings.Fields(m.Text), " "), mostQuote), mostRows)
		if err != nil {
			return err
		}
	}
	return nil
}

// Line is something that was noticed of a person.
type Line struct {
	Key, Value string
	Said       int // wishes in words among Count
	Count      int
	Last       time.Time
	Quote      string // the beginning of the newest message that says it, or else shows it
	Name       string // what a language calls itself; else Value
	Rule       string // for the model

	weight float64
}

// Lines returns what holds of a person at the time now, at most 10 lines. A zero store has none.
func (s Store) Lines(ctx context.Context, person string, now time.Time) ([]Line, error) {
	if s.DB == nil {
		return nil, nil
	}
	lines, err := store.List(ctx, s.DB, func(row store.Row) (l Line, err error) {
		var last, best int64
		err = row.Scan(&l.Key, &l.Value, &l.Said, &l.Count, &last, &l.Quote, &best)
		l.Last, l.Name, l.Rule = time.Unix(last, 0), l.Value, instruction(l.Key, l.Value)
		if l.Key == Language {
			l.Name = languageName(l.Value)
		}
		points, days := float64(l.Count+l.Said), max(0, now.Sub(l.Last).Hours()/24)
		l.weight = points * math.Exp2(-days/(halfLife*points))
		return l, err
	}, `SELECT key, value, sum(said), count(*), at, quote, max(said * 100000000000 + at) FROM manner WHERE person = ?
		GROUP BY key, value`, person) // SQLite takes at and quote from the row of max()
	lines = slices.DeleteFunc(lines, func(l Line) bool { return l.weight < leastKept || l.Said == 0 && l.Count < leastSeen })
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Compare(b.weight, a.weight) })
	lines = lines[:min(len(lines), mostLines)]
	slices.SortFunc(lines, func(a, b Line) int { return strings.Compare(a.Key+" "+a.Value, b.Key+" "+b.Value) })
	return lines, store.Wrap(err, "manner: read")
}

// instruction returns the line for the model.
func instruction(key, value string) string {
	switch key {
	case Language:
		return fmt.Sprintf("Answer in this language: %s.", languageName(value))
	case NotSay:
		return fmt.Sprintf("Do without the phrase “%s”.", value)
	}
	return rules[key+" "+value]
}

// languageName returns what a language calls itself, such as "Deutsch" for "de".
func languageName(code string) string {
	return cmp.Or(strings.Join(text.Words(code, "own_name"), ""), code)
}

// Forget removes a line of a person with all that was noticed of it.
func (s Store) Forget(ctx context.Context, person string, l Line) error {
	return store.Exec(ctx, s.DB, `DELETE FROM manner WHERE person = ? AND key = ? AND value = ?`, person, l.Key, l.Value)
}

// Redact removes what the message event showed, and returns the rules that quote it.
func (s Store) Redact(ctx context.Context, event string) (quotes []string, err error) {
	if s.DB == nil {
		return nil, nil
	}
	phrases, err := store.Column[string](ctx, s.DB, `DELETE FROM manner WHERE event = ? RETURNING iif(key = 'not_say', value, '')`, event)
	for _, p := range phrases {
		quotes = append(quotes, instruction(NotSay, p))
	}
	return quotes, store.Wrap(err, "manner: redact")
}

// ForgetQuoting removes observations that hold one of texts.
func ForgetQuoting(ctx context.Context, db store.DBTX, texts []string) error {
	return store.Exec(ctx, db, `DELETE FROM manner WHERE EXISTS
		(SELECT 1 FROM json_each(?) AS forgotten WHERE forgotten.value <> '' AND instr(quote, forgotten.value) > 0)`, store.Array(texts))
}
