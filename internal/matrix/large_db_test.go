package matrix

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"reverie/internal/session"
)

// TestDividedIsNoSurplus: parts that the homeserver made necessary stand when the same is said
// again, whatever was closed and opened again where they were cut; they go when something
// else is said.
func TestDividedIsNoSurplus(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("some words ", 1500))
	for name, text := range map[string]string{
		"words":        words,
		"a spoiler":    "So: ||" + words + "|| it was.",
		"code":         "```go\n" + strings.Repeat("if a < b {\n", 400) + "```",
		"a table":      "| a | b |\n|---|---|\n" + strings.Repeat("| one | two |\n", 300),
		"a quotation":  "> " + words,
		"blank lines":  strings.Repeat("A paragraph of words.\n\n\n\n", 400),
		"parts of one": "||" + strings.TrimSpace(strings.Repeat("some words ", 4500)) + "||",
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			c := &Client{q: q, log: slog.New(slog.DiscardHandler)}
			say := func(text string) {
				t.Helper()
				if err := q.say(t.Context(), "!r", session.Outgoing{ID: "re:$1", Text: text}, split(text, partSize)); err != nil {
					t.Fatal(err)
				}
			}
			say(text)
			for _, like := range []string{"re:$1", "re:$1+%"} { // and one of them again
				r, err := scanOut(q.db.QueryRowContext(t.Context(), `SELECT `+outColumns+` FROM outbox WHERE id LIKE ? ORDER BY length(text) DESC LIMIT 1`, like))
				if err != nil {
					t.Fatal(err)
				}
				if ok, err := c.divide(t.Context(), r); !ok || err != nil {
					t.Fatalf("%s is not divided: %v", r.id, err)
				}
			}
			rows := standing(t, q)
			say(text)
			if now := standing(t, q); now != rows {
				t.Errorf("of the parts\n%s\nthere are\n%s", rows, now)
			}
			if say(text + "\n\nA word more."); name != "parts of one" && strings.Contains(standing(t, q), "+") { // it is cut elsewhere, under other names
				t.Errorf("of a longer text there are\n%s", standing(t, q))
			}
			say("something else, shorter")
			if now := standing(t, q); now != "re:$1" {
				t.Errorf("of another text there are\n%s", now)
			}
		})
	}
}

// standing are the names of the messages that are said or to be said.
func standing(t *testing.T, q *queue) (ids string) {
	t.Helper()
	if err := q.db.QueryRowContext(context.Background(), `SELECT group_concat(id, ' ') FROM (SELECT id FROM outbox WHERE state <> 'dead' ORDER BY id)`).Scan(&ids); err != nil {
		t.Fatal(err)
	}
	return ids
}
