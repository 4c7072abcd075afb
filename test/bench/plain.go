package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/matrix/render"
	"reverie/internal/memory/lines"
	"reverie/internal/store"
	"reverie/internal/text"
)

// commits measures the two transactions that carry each message.
func (b *bench) commits(ctx context.Context, dir string) error {
	db, err := store.Open(ctx, filepath.Join(dir, "bot.db"), reverie.Migrations)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `CREATE TABLE plain (text TEXT)`); err != nil {
		return err
	}
	plain := func(int) error {
		_, err := db.ExecContext(ctx, `INSERT INTO plain (text) VALUES ('hello')`)
		return err
	}
	in, out := delivery.New(db, time.Now, func(string) bool { return false })
	for _, c := range []struct {
		what string
		do   func(i int) error
	}{
		{"a message of the sync", func(i int) error {
			m := chat.Message{Head: chat.Head{ID: fmt.Sprint("$", i), Room: "!room", Sender: "@you:localhost", At: time.Now()}, Text: "hello"}
			return in.Commit(ctx, &delivery.Batch{In: []delivery.Incoming{{Event: m}}}, func(*sql.Tx) error { return nil })
		}},
		{"its answer", func(i int) error {
			m := chat.Outgoing{ID: fmt.Sprint("reply-", i), Text: "yes", ReplyTo: fmt.Sprint("$", i)}
			return out.StoreFinal(ctx, delivery.Final{Room: "!room", Message: m, Text: "yes"}, func(ctx context.Context, tx *sql.Tx) error {
				return in.MarkDone(ctx, tx, m.ReplyTo)
			})
		}},
	} {
		ours, theirs, err := beside(500, c.do, plain)
		if err != nil {
			return err
		}
		b.put(percentiles("transaction of "+c.what, 0, 0, ours, "a commit of SQLite of one row", theirs)...)
	}
	return nil
}

// texts measures what is done with each text, beside a copy of as many bytes.
func (b *bench) texts(context.Context, string) error {
	answer := strings.Repeat("- A **list** with `code`, a [link](https://example.org) and the number 42.\n\nAnd a plain paragraph of words, one after the other.\n\n", 80)
	memories := []byte(strings.Repeat("The person likes tea more than coffee, and said so on a long walk by the sea.\n", 130))
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"Markdown as Matrix HTML", func() { render.HTML(answer) }},
		{"words and stems of a text", func() { text.Terms(text.Tokens(answer)) }},
		{"search for passwords and keys in a text", func() { text.HasSecret(answer) }},
		{"lines of a memory file", func() { lines.Texts(memories) }},
	} {
		into := make([]byte, len(answer))
		ours, theirs, err := beside(300, func(int) error { c.do(); return nil }, func(int) error { copy(into, answer); return nil })
		if err != nil {
			return err
		}
		b.put(percentiles(c.what+" (10 kB)", 0, 0, ours, "a copy in memory", theirs)[0])
	}
	return nil
}
