package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	reverie "reverie"
	"reverie/internal/llm/encoder"
	"reverie/internal/memory"
	"reverie/internal/search/vector"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// rig is a memory that holds all chats.
type rig struct {
	db    *store.DB
	words *memory.Store
	both  *memory.Store // words and vectors; nil = the program has no weights
}

// newRig stores chats in dir as the bot does: each message is indexed as history. With harvest the
// memories that a perfect model makes of them are stored as well.
func newRig(ctx context.Context, dir, cache string, chats []*chat, harvest bool) (*rig, error) {
	db, err := store.Open(ctx, filepath.Join(dir, "bot.db"), reverie.Migrations)
	if err != nil {
		return nil, err
	}
	r := &rig{db: db}
	if _, err := db.ExecContext(ctx, `PRAGMA synchronous = OFF`); err != nil {
		return nil, err
	}
	c := memory.Config{DB: db, Dir: dir, Backend: "fts5"}
	if r.words, err = memory.Open(ctx, c); err != nil {
		return nil, err
	}
	for _, c := range chats {
		if err := r.index(ctx, c); err != nil {
			return nil, err
		}
		if harvest {
			if err := r.learn(ctx, c); err != nil {
				return nil, err
			}
		}
	}
	if !encoder.BuiltIn() {
		return r, nil
	}
	vectors, err := vector.Open(ctx, vector.Config{DB: db, Embedder: &cachedEmbedder{dir: cache, next: encoder.NewLazy()}, Patience: time.Minute})
	if err != nil {
		return nil, err
	}
	if err := vectors.Complete(ctx); err != nil {
		return nil, err
	}
	c.Backend, c.Vectors = "local_vector", vectors
	r.both, err = memory.Open(ctx, c)
	return r, err
}

// index indexes the messages of c as package recall does.
func (r *rig) index(ctx context.Context, c *chat) error {
	for _, m := range c.messages {
		t := memory.Turn{Scope: trust.Readers(m.Scope), Integrity: trust.User, Event: event(m.Ref), At: m.ObservedAt, Conversation: m.Conversation, Seq: m.Seq, Text: m.Text}
		if m.Speaker == "user" {
			t.Sender = c.user()
		}
		if err := r.words.IndexTurns(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func event(ref string) string { return "$" + ref }

// learn stores the memories of c as package harvest does.
func (r *rig) learn(ctx context.Context, c *chat) error {
	var all []memory.Entry
	for _, f := range c.facts {
		e := memory.Entry{Scope: trust.Readers(c.scope()), Text: f.Memory, Subject: c.user(), Kind: memory.Fact, Integrity: trust.User,
			Source: memory.Harvest, Event: event(f.Ref), Quote: f.Text, ObservedAt: f.At}
		if f.wish {
			e.Kind = memory.Preference
		}
		all = append(all, e)
	}
	done, err := r.words.Learn(ctx, "harvest", all, func(context.Context, *sql.Tx) error { return nil })
	for _, l := range done {
		if l.Refused != nil {
			return fmt.Errorf("%s: %w", l.Entry.Text, l.Refused)
		}
	}
	return err
}

// cachedEmbedder keeps vectors in a folder, a file for each text.
type cachedEmbedder struct {
	dir  string // "" = they are not kept
	next vector.Embedder
}

// Name implements vector.Embedder.
func (c *cachedEmbedder) Name() string { return c.next.Name() }

// Embed implements vector.Embedder.
func (c *cachedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v, err := c.one(ctx, text)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (c *cachedEmbedder) one(ctx context.Context, text string) ([]float32, error) {
	name := filepath.Join(c.dir, fmt.Sprintf("%x", sha256.Sum256([]byte(c.Name()+"\n"+text)))[:32])
	if data, err := os.ReadFile(name); c.dir != "" && !errors.Is(err, fs.ErrNotExist) {
		var v []float32
		for ; len(data) >= 4; data = data[4:] {
			v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(data)))
		}
		return v, err
	}
	all, err := c.next.Embed(ctx, []string{text})
	if err != nil || c.dir == "" {
		return one(all), err
	}
	var data []byte
	for _, x := range all[0] {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return all[0], os.WriteFile(name, data, 0o600)
}

func one(all [][]float32) []float32 {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}
