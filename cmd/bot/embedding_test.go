package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/llm/encoder"
	"reverie/internal/memory"
	"reverie/internal/memory/standin"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// TestDoctorAsksForVectors: the doctor says whether they come, and how long they are.
func TestDoctorAsksForVectors(t *testing.T) {
	answer := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(answer)
		fmt.Fprint(w, `{"embeddings":[[1,2,3]]}`)
	}))
	defer server.Close()
	b := &bot{cfg: &Config{LLM: LLMConfig{Embedding: &EmbeddingConfig{BaseURL: server.URL + "/api", Model: "m"}}}}
	if f := b.examineEmbedding(t.Context()); len(f) != 1 || f[0].State != well || !strings.Contains(f[0].What, "with 3 numbers a text") {
		t.Errorf("findings %+v", f)
	}
	answer = http.StatusNotFound
	if f := b.examineEmbedding(t.Context()); len(f) != 1 || f[0].State != ill || f[0].Remedy == "" {
		t.Errorf("findings %+v", f)
	}
	b.cfg.LLM.Embedding = nil
	if f := b.examineEmbedding(t.Context()); f != nil {
		t.Errorf("findings %+v", f)
	}
}

// TestOpenVectors: who makes them, and what is said when nobody can.
func TestOpenVectors(t *testing.T) {
	for name, tt := range map[string]struct{ more, model string }{
		"another backend":    {"memory: {backend: fts5}\n", ""},
		"not chosen":         {"", encoder.Model},
		"built in":           {"memory: {backend: local_vector}\n", encoder.Model},
		"configured":         {"  embedding: {base_url: \"http://127.0.0.1:1/v1\", model: other}\nmemory: {backend: local_vector}\n", "other"},
		"configured, unused": {"  embedding: {base_url: \"http://127.0.0.1:1/v1\", model: other}\nmemory: {backend: flat_file}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse(t, t.TempDir(), small+tt.more)
			must(t, err)
			var said strings.Builder
			db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "bot.db"), reverie.Migrations)
			must(t, err)
			defer db.Close()
			b := &bot{cfg: c, db: db, log: slog.New(slog.NewTextHandler(&said, nil))}
			v, err := b.openVectors(t.Context(), time.Nanosecond)
			must(t, err)
			model := ""
			if v != nil {
				model = v.Status(t.Context()).Model
			}
			if !encoder.BuiltIn() && tt.model == encoder.Model {
				tt.model = ""
				if !strings.Contains(said.String(), "found by their words only") {
					t.Errorf("without weights it says %q", said.String())
				}
			}
			if model != tt.model {
				t.Errorf("vectors are made by %q, want %q", model, tt.model)
			}
		})
	}
}

// TestBuiltInEmbedder: what it does not know has no vector, and it is let go of
// when nobody needs it.
func TestBuiltInEmbedder(t *testing.T) {
	if !encoder.BuiltIn() {
		t.Skip("the encoder's weights are not here; `make weights` fetches them")
	}
	e := &builtIn{log: slog.New(slog.DiscardHandler), keep: time.Hour}
	held := func() *encoder.Encoder {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.loaded
	}
	if held() != nil {
		t.Error("it is loaded before it is needed")
	}
	vectors, err := e.Embed(t.Context(), []string{"good morning", "早上好，你今天怎么样", "", "good evening"})
	if err != nil || len(vectors) != 4 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	for i, want := range []int{encoder.Dims, 0, 0, encoder.Dims} {
		if len(vectors[i]) != want {
			t.Errorf("vector %d has %d numbers, want %d", i, len(vectors[i]), want)
		}
	}
	first := held()
	again, err := e.Embed(t.Context(), []string{"good morning"})
	if err != nil || held() != first || first == nil {
		t.Errorf("it is loaded for each question: %v", err)
	}
	e.mu.Lock()
	e.rest.Reset(0) // the hour is over
	e.mu.Unlock()
	until(t, "it is never let go of", func() bool { return held() == nil })
	after, err := e.Embed(t.Context(), []string{"good morning"})
	if err != nil || !slices.Equal(after[0], again[0]) {
		t.Errorf("loaded once more it makes another vector: %v", err)
	}
}

// TestQdrantAtWork: the bot reads memories in the background, has a server find them by
// meaning, says how it does, and takes what is forgotten away from there.
func TestQdrantAtWork(t *testing.T) {
	if _, err := encoder.Embedded(); err != nil {
		t.Skip("no weights are built in: make weights")
	}
	s := &standin.Server{Key: "hunter9"}
	server := httptest.NewServer(s)
	defer server.Close()
	var log strings.Builder
	b := openLogged(t, small+`memory: {backend: qdrant, qdrant: {url: "`+server.URL+`", api_key: hunter9, collection: test}}`, &log)
	for _, text := range []string{"Rex is my puppy.", "The kitchen was painted green.", "The train leaves at seven."} {
		if _, _, err := b.memory.Add(t.Context(), memory.Entry{Scope: memory.Shared, Text: text, Source: memory.Assistant, Integrity: trust.User}, "assistant"); err != nil {
			t.Fatal(err)
		}
	}
	stop := background(t, b.runVectors)
	until(t, "not all vectors are stored", func() bool {
		n := 0
		for _, name := range s.Collections() {
			n += len(s.Points(name))
		}
		return n == 3
	})
	hits, err := b.memory.Search(t.Context(), memory.Query{Text: "Does anybody own a dog?", Scopes: []memory.Scope{memory.Shared}})
	if err != nil || len(hits) == 0 || hits[0].Entry.Text != "Rex is my puppy." {
		t.Errorf("found %+v, %v", hits, err)
	}
	if !slices.Contains(s.Calls(), "POST /collections/"+s.Collections()[0]+"/points/query") {
		t.Errorf("the server was asked %q", s.Calls())
	}
	stop()
	if lines := b.withVectors(nil)(t.Context(), b.messages.For(t.Context(), "!r")); len(lines) != 1 || lines[0] != "qdrant: in use" {
		t.Errorf("status %q", lines)
	}
	if f := b.examineQdrant(t.Context()); len(f) != 1 || f[0].State != well {
		t.Errorf("the doctor says %+v", f)
	}
	// At the command line, where no vectors are read.
	c := *b
	c.closers = nil
	c.points = c.openPoints(nil, 0)
	if c.memory, err = memory.Open(t.Context(), memory.Config{DB: b.db, Dir: b.cfg.Data, Backend: memory.Qdrant, Points: c.points}); err != nil {
		t.Fatal(err)
	}
	_, err = c.memory.Forget(t.Context(), operator(), hits[0].Entry.ID)
	must(t, err)
	if n := len(s.Points(s.Collections()[0])); n != 2 {
		t.Errorf("%d points are left on the server", n)
	}
	s.Break(standin.Refuse(503))
	if f := b.examineQdrant(t.Context()); len(f) != 1 || f[0].State != ill || f[0].Remedy == "" || strings.Contains(f[0].What, "hunter9") {
		t.Errorf("the doctor says %+v", f)
	}
	if strings.Contains(log.String(), "hunter9") {
		t.Errorf("the key is in the log: %s", log.String())
	}
}
