package main

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/llm/encoder"
	"reverie/internal/memory"
	"reverie/internal/search"
	"reverie/internal/search/vector"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// plainFTS is an FTS5 table without weights, neighbours or ranking.
type plainFTS struct{ db *store.DB }

const plainQuery = "a plain FTS5 query without rank"

// openPlain returns a table of texts in dir, and how long it took to insert them in one transaction.
func openPlain(ctx context.Context, dir string, texts []string) (p plainFTS, took time.Duration, err error) {
	if p.db, err = store.Open(ctx, filepath.Join(dir, "plain.db"), reverie.Migrations); err != nil {
		return p, 0, err
	}
	began := time.Now()
	err = store.InTx(ctx, p.db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `CREATE VIRTUAL TABLE plain USING fts5 (text)`); err != nil {
			return err
		}
		insert, err := tx.PrepareContext(ctx, `INSERT INTO plain (text) VALUES (?)`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for _, text := range texts {
			if _, err := insert.ExecContext(ctx, text); err != nil {
				return err
			}
		}
		return nil
	})
	return p, time.Since(began), err
}

// search reads the texts of ten rows with any word of a question.
func (p plainFTS) search(ctx context.Context, question string) error {
	words := strings.FieldsFunc(question, func(r rune) bool { return r == ' ' || r == '?' })
	_, err := store.Column[string](ctx, p.db, `SELECT text FROM plain WHERE plain MATCH ? LIMIT 10`, `"`+strings.Join(words, `" OR "`)+`"`)
	return err
}

// search measures queries of 10,000 and 20,000 memories, all in one scope, which is the slowest case. The
// word frequencies are those of a natural language.
func (b *bench) search(ctx context.Context, _ string) error {
	err := inFolder(func(dir string) error { return b.searchOf(ctx, dir, 10_000, 10) })
	if err != nil {
		return err
	}
	return inFolder(func(dir string) error { return b.searchOf(ctx, dir, 20_000, 15) })
}

func (b *bench) searchOf(ctx context.Context, dir string, n int, limit float64) error {
	bot, err := b.botIn(ctx, dir, "memory: {backend: fts5}\n"+rehearsal)
	if err != nil {
		return err
	}
	lines, questions := filepath.Join(dir, "memories.jsonl"), filepath.Join(dir, "questions.jsonl")
	texts, asked, err := writeMemories(lines, questions, n)
	if err != nil {
		return err
	}
	if _, _, err := timed(bot("memory", "import", lines)); err != nil {
		return err
	}
	_, peak, err := timed(bot("memory", "search", "--batch", questions))
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, filepath.Join(dir, "data", "bot.db"), reverie.Migrations)
	if err != nil {
		return err
	}
	defer db.Close()
	plain, _, err := openPlain(ctx, dir, texts)
	if err != nil {
		return err
	}
	defer plain.db.Close()
	v, err := vector.Open(ctx, vector.Config{DB: db, Embedder: randomEmbedder{}, Patience: time.Minute})
	if err == nil {
		err = v.Complete(ctx)
	}
	if err != nil {
		return err
	}
	index := search.Open(db)
	hybrid := search.OpenHybrid(index, v, nil)
	for _, way := range []struct {
		name string
		find func(context.Context, search.Query) ([]search.Hit, error)
	}{{"by words", index.Search}, {"by words and made-up vectors", hybrid.Search}} {
		ours, theirs, err := beside(len(asked), func(i int) error {
			_, err := way.find(ctx, memory.Query{Text: asked[i], Scopes: []memory.Scope{memory.Shared}})
			return err
		}, func(i int) error { return plain.search(ctx, asked[i]) })
		if err != nil {
			return err
		}
		b.put(percentiles(fmt.Sprintf("%d memories, question %s", n, way.name), 0, limit, ours, plainQuery, theirs)...)
	}
	b.put(figure{What: fmt.Sprintf("%d memories, questions, peak memory", n), Value: peak, Unit: "MB", Limit: 200})
	return b.nearest(ctx, v, n, asked)
}

// nearest compares a vector with all in memory, beside a loop over as many and a sort.
func (b *bench) nearest(ctx context.Context, v *vector.Vectors, n int, asked []string) error {
	all := make([][]float32, n)
	for i := range all {
		vectors, _ := randomEmbedder{}.Embed(ctx, []string{fmt.Sprint(i)})
		all[i] = vectors[0]
	}
	q := v.EmbedQuery(ctx, asked[0])
	ours, theirs, err := beside(100, func(int) error {
		_, err := v.Nearest(ctx, q, vector.Filter{Scopes: []trust.Readers{memory.Shared}}, 100)
		return err
	}, func(int) error {
		products := make([]float32, n)
		for i, vec := range all {
			var sum float32
			for j, x := range vec {
				sum += q[j] * x
			}
			products[i] = sum
		}
		slices.Sort(products)
		return nil
	})
	if err != nil {
		return err
	}
	b.put(percentiles(fmt.Sprintf("the 100 nearest of %d vectors", n), 0, 0, ours, "a loop over the vectors and a sort", theirs)...)
	e, err := encoder.Embedded()
	if err != nil || n > 10_000 { // once is enough
		return nil
	}
	ours, _, err = beside(100, func(i int) error { _, _, err := e.Encode(ctx, asked[i]); return err }, nil)
	if err == nil {
		b.put(percentiles("the vector of a question, "+encoder.Model, 0, 0, ours, "", nil)...)
	}
	return err
}

// messages measures queries of 100,000 past messages of one room, each with new words.
func (b *bench) messages(ctx context.Context, dir string) error {
	const n = 100_000
	texts, asked, err := writeMemories(filepath.Join(dir, "lines"), filepath.Join(dir, "questions"), n)
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, filepath.Join(dir, "bot.db"), reverie.Migrations)
	if err != nil {
		return err
	}
	defer db.Close()
	room := trust.RoomReaders("!room:localhost")
	begin := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
	err = store.InTx(ctx, db, func(tx *sql.Tx) error {
		for i, text := range texts {
			if _, err := tx.ExecContext(ctx, `INSERT INTO past_message (scope, event, sender, at, conversation, seq, text, integrity) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
				room, fmt.Sprint("$", i), []string{"@anna:localhost", ""}[i%2], begin.Add(time.Duration(i)*3*time.Minute).UnixMilli(), fmt.Sprint("c", i/40), i, text, trust.User); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	index := search.Open(db)
	began := time.Now()
	if _, err := index.Rebuild(ctx); err != nil {
		return err
	}
	rebuilt := time.Since(began)
	plain, inserted, err := openPlain(ctx, dir, texts)
	if err != nil {
		return err
	}
	defer plain.db.Close()
	b.put(figure{What: "100,000 messages, reindex", Value: rebuilt.Seconds(), Unit: "s", Baseline: inserted.Seconds(), Plain: "inserts into a plain FTS5 table"})
	ours, theirs, err := beside(len(asked), func(i int) error {
		_, err := index.Search(ctx, search.Query{Text: asked[i], Scopes: []trust.Readers{room}, Turns: true})
		return err
	}, func(i int) error { return plain.search(ctx, asked[i]) })
	if err == nil {
		b.put(percentiles("100,000 messages, question", 0, 20, ours, plainQuery, theirs)...)
	}
	return err
}

// randomEmbedder gives each text a random vector, always the same: real ones would take too long, and
// are compared in the same time.
type randomEmbedder struct{}

// Name implements vector.Embedder.
func (randomEmbedder) Name() string { return "made-up" }

// Embed implements vector.Embedder.
func (randomEmbedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		h := fnv.New64a()
		h.Write([]byte(text))
		random := rand.New(rand.NewPCG(h.Sum64(), 1))
		out[i] = make([]float32, encoder.Dims)
		for j := range out[i] {
			out[i][j] = float32(random.NormFloat64())
		}
	}
	return out, nil
}
