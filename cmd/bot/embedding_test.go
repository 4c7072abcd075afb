package main

import (
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/llm/encoder"
	"reverie/internal/memory"
	"reverie/internal/memory/standin"
	"reverie/internal/trust"
)

// TestOpenVectors: who makes them, and what is said when nobody can.
func TestOpenVectors(t *testing.T) {
	const other = "  embedding: {base_url: \"http://127.0.0.1:1/v1\", model: other}\nmemory: {backend: "
	for more, want := range map[string]string{
		"memory: {backend: fts5}\n": "", "": encoder.Model, other + "local_vector}\n": "other", other + "flat_file}\n": "",
	} {
		var said strings.Builder
		v := openLogged(t, small+more, &said).vectors
		model := ""
		if v != nil {
			model = v.Status(t.Context()).Model
		}
		if want == encoder.Model && !encoder.BuiltIn() {
			if want = ""; !strings.Contains(said.String(), "found by their words only") {
				t.Errorf("without weights it says %q", said.String())
			}
		}
		if model != want {
			t.Errorf("%q: vectors are made by %q, want %q", more, model, want)
		}
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
