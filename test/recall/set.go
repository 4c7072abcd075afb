package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	reverie "reverie"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/memory/jsonl"
	"reverie/internal/store"
)

// line is what the measurement reads of a line of memory.jsonl.
type line struct {
	Text    string       `json:"text"`
	Scope   memory.Scope `json:"scope"`
	Subject string       `json:"subject"`
	Ref     string       `json:"ref"`
}

// question is a line of questions.jsonl.
type question struct {
	Query    string       `json:"query"`
	Context  string       `json:"context"` // the message before it
	Scope    memory.Scope `json:"scope"`
	Kind     string       `json:"kind"`
	Evidence []string     `json:"evidence"` // refs of its scope; none = nothing answers it
	Now      time.Time    `json:"now"`
	Apart    bool         `json:"apart"` // counts in its kind only
}

// set is a labelled set in a database of its own.
type set struct {
	db        *store.DB
	lines     []line
	questions []question
	tokens    map[memory.Scope]map[string]int // cost of a ref in a prompt
}

// load imports the set of folder into a new database in dir. The caller closes its db.
func load(ctx context.Context, folder, dir string) (s *set, err error) {
	s = &set{tokens: map[memory.Scope]map[string]int{}}
	data, err := os.ReadFile(filepath.Join(folder, "memory.jsonl"))
	if err != nil {
		return nil, err
	}
	if s.lines, err = decode[line](data); err != nil {
		return nil, fmt.Errorf("memory.jsonl: %w", err)
	}
	asked, err := os.ReadFile(filepath.Join(folder, "questions.jsonl"))
	if err != nil {
		return nil, err
	}
	if s.questions, err = decode[question](asked); err != nil {
		return nil, fmt.Errorf("questions.jsonl: %w", err)
	}
	for _, l := range s.lines {
		if s.tokens[l.Scope] == nil {
			s.tokens[l.Scope] = map[string]int{}
		}
		shown := memory.Hit{Entry: memory.Entry{Text: l.Text, Subject: l.Subject, Source: memory.Imported, ObservedAt: time.Now()}}
		s.tokens[l.Scope][l.Ref] = llm.EstimateTokens(shown.Line(time.UTC, nil))
	}
	for i, q := range s.questions {
		for _, ref := range q.Evidence {
			if s.tokens[q.Scope][ref] == 0 {
				return nil, fmt.Errorf("questions.jsonl: evidence %q of question %d is not in scope %q", ref, i+1, q.Scope)
			}
		}
	}
	if s.db, err = store.Open(ctx, filepath.Join(dir, "bot.db"), reverie.Migrations); err != nil {
		return nil, err
	}
	memories, err := memory.Open(ctx, memory.Config{DB: s.db, Dir: dir, Backend: "fts5"})
	if err == nil {
		_, err = (&jsonl.Importer{Store: memories, Now: time.Now}).Import(ctx, "memory.jsonl", data)
	}
	if err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	return s, nil
}

// decode reads JSON lines.
func decode[T any](data []byte) (all []T, err error) {
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var one T
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, err)
		}
		all = append(all, one)
	}
}
