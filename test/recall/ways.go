package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"reverie/internal/llm/encoder"
	"reverie/internal/memory"
	"reverie/internal/search"
	"reverie/internal/search/vector"
	"reverie/internal/store"
)

// way is one way to search. It returns the refs of the best k hits of q.
type way struct {
	name   string
	search func(ctx context.Context, q question, k int, floor float64) ([]string, error)
}

// ways are all ways to search s. Vectors are kept in cache; "" = nowhere.
func ways(ctx context.Context, s *set, cache string) ([]way, error) {
	plain, err := openPlain(ctx, s)
	if err != nil {
		return nil, err
	}
	fts := search.Open(s.db)
	all := []way{{"plain FTS5", plain.search}, {"fts5", ours(s.db, fts.Search)}}
	if !encoder.BuiltIn() {
		return all, nil
	}
	v, err := vector.Open(ctx, vector.Config{DB: s.db, Embedder: cached{cache, encoder.NewLazy()}, Patience: time.Minute})
	if err == nil {
		err = v.Complete(ctx)
	}
	joined := ours(s.db, search.OpenHybrid(fts, v, nil).Search)
	return append(all, way{"local_vector", func(ctx context.Context, q question, k int, floor float64) ([]string, error) {
		if floor == 0 { // the next search has the same query and is timed
			defer v.EmbedQuery(ctx, q.Query)
		}
		return joined(ctx, q, k, floor)
	}}), err
}

// ours searches as the bot does.
func ours(db *store.DB, find func(context.Context, search.Query) ([]search.Hit, error)) func(context.Context, question, int, float64) ([]string, error) {
	return func(ctx context.Context, q question, k int, floor float64) (refs []string, err error) {
		hits, err := memory.Search(ctx, db, find, memory.Query{Text: q.Query, Context: q.Context, Scopes: []memory.Scope{q.Scope},
			Now: q.Now, K: k, Floor: floor})
		for _, h := range hits {
			refs = append(refs, h.Entry.Ref)
		}
		return refs, err
	}
}

// plain is an FTS5 table for each scope, as anybody would make it.
type plain struct {
	db     *store.DB
	tables map[memory.Scope]string
}

func openPlain(ctx context.Context, s *set) (*plain, error) {
	p := &plain{s.db, map[memory.Scope]string{}}
	return p, store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		for _, l := range s.lines {
			table, there := p.tables[l.Scope]
			if !there {
				table = fmt.Sprint("plain_", len(p.tables))
				p.tables[l.Scope] = table
				create := `CREATE VIRTUAL TABLE ` + table + ` USING fts5(ref UNINDEXED, text, tokenize = 'porter unicode61')`
				if _, err := tx.ExecContext(ctx, create); err != nil {
					return err
				}
			}
			text := strings.TrimPrefix(l.Subject+": "+l.Text, ": ")
			if _, err := tx.ExecContext(ctx, `INSERT INTO `+table+` (ref, text) VALUES (?, ?)`, l.Ref, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// search has no floor.
func (p *plain) search(ctx context.Context, q question, k int, _ float64) ([]string, error) {
	words := strings.FieldsFunc(q.Query, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	table, there := p.tables[q.Scope]
	if len(words) == 0 || !there {
		return nil, nil
	}
	query := `SELECT ref FROM ` + table + ` WHERE ` + table + ` MATCH ? ORDER BY bm25(` + table + `) LIMIT ?`
	return store.Column[string](ctx, p.db, query, `"`+strings.Join(words, `" OR "`)+`"`, k)
}

// cached keeps the vectors of an embedder in files of a folder, named by the hash of the text.
type cached struct {
	dir string
	vector.Embedder
}

// Embed implements vector.Embedder.
func (c cached) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if c.dir == "" {
		return c.Embedder.Embed(ctx, texts)
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		sum := sha256.Sum256([]byte(c.Name() + "\n" + text))
		name := hex.EncodeToString(sum[:])
		path := filepath.Join(c.dir, name[:2], name[2:])
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			data, err = c.encode(ctx, path, text)
		}
		if err != nil {
			return nil, err
		}
		if len(data) > 0 {
			out[i] = make([]float32, len(data)/4)
			_, err = binary.Decode(data, binary.LittleEndian, out[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// encode writes the vector of text to path; an empty file = it has none.
func (c cached) encode(ctx context.Context, path, text string) ([]byte, error) {
	vectors, err := c.Embedder.Embed(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, vectors[0]); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	half := path + ".new" // an interrupted run leaves no half vector
	if err := os.WriteFile(half, b.Bytes(), 0o600); err != nil {
		return nil, err
	}
	return b.Bytes(), os.Rename(half, path)
}
