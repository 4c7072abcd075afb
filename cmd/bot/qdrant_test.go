package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/llm/encoder"
	"reverie/internal/memory"
	"reverie/internal/memory/standin"
	"reverie/internal/trust"
)

func TestQdrantConfig(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("hunter9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parse(t, dir, small+`memory: {backend: qdrant, qdrant: {url: "https://q.example.org", api_key_file: key}}`)
	if err != nil {
		t.Fatal(err)
	}
	if q := c.Memory.Qdrant; *q != (QdrantConfig{"https://q.example.org", "hunter9", "key", "reverie"}) {
		t.Errorf("read as %#v", q)
	}
	if w := c.warnings; len(w) > 0 {
		t.Errorf("warnings %q", w)
	}
	if said := fmt.Sprintf("%+v %#v %v", *c.Memory.Qdrant, *c.Memory.Qdrant, c.Memory.Qdrant); strings.Contains(said, "hunter9") {
		t.Errorf("printed, the key is seen: %s", said)
	}
	for url, want := range map[string]string{
		"http://q.example.org:6333": "memory.qdrant.url: the key and the vectors", "http://127.0.0.1:6333": "", "http://[::1]:6333": "", "http://localhost": "", "https://q.example.org:6334": "6334 is mostly",
	} {
		c, err := parse(t, dir, small+`memory: {backend: qdrant, qdrant: {url: "`+url+`", api_key: x}}`)
		if err != nil {
			t.Fatal(err)
		}
		if w := strings.Join(c.warnings, "|"); (want == "") != (w == "") || !strings.Contains(w, want) {
			t.Errorf("%s: warnings %q, want %q", url, w, want)
		}
	}
	for text, want := range map[string]string{
		`memory: {backend: qdrant}`:                                            "memory.backend: qdrant needs a server",
		`memory: {qdrant: {url: "q.example.org:6333"}}`:                        "memory.qdrant.url: write a full http or https address",
		`memory: {qdrant: {}}`:                                                 "memory.qdrant.url: missing",
		`memory: {qdrant: {url: "http://q", collection: "a/b"}}`:               "memory.qdrant.collection: write letters",
		`memory: {qdrant: {url: "http://q", api_key: a, api_key_file: key}}`:   "memory.qdrant.api_key_file: the secret is given twice",
		`memory: {qdrant: {url: "http://u:hunter9@q", api_key: a, host: "q"}}`: "memory.qdrant.host: unknown key",
	} {
		if _, err := parse(t, dir, small+text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter9") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
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
	dir := t.TempDir()
	cfg, err := parse(t, dir, small+`memory: {backend: qdrant, qdrant: {url: "`+server.URL+`", api_key: hunter9, collection: test}}`)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	b, err := openBot(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)), true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for _, text := range []string{"Rex is my puppy.", "The kitchen was painted green.", "The train leaves at seven."} {
		if _, _, err := b.memory.Add(t.Context(), memory.Entry{Scope: memory.Shared, Text: text, Source: memory.Assistant, Integrity: trust.User}, "assistant"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- b.runVectors(ctx) }() // go: ends with the test
	stored := func() (n int) {
		for _, name := range s.Collections() {
			n += len(s.Points(name))
		}
		return n
	}
	for limit := time.Now().Add(time.Minute); stored() < 3 && time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
	}
	hits, err := b.memory.Search(ctx, memory.Query{Text: "Does anybody own a dog?", Scopes: []memory.Scope{memory.Shared}})
	if err != nil || len(hits) == 0 || hits[0].Entry.Text != "Rex is my puppy." {
		t.Errorf("found %+v, %v", hits, err)
	}
	if !slices.Contains(s.Calls(), "POST /collections/"+s.Collections()[0]+"/points/query") {
		t.Errorf("the server was asked %q", s.Calls())
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if lines := b.withVectors(nil)(t.Context(), b.messages.For(t.Context(), "!r")); len(lines) != 1 || lines[0] != "qdrant: in use" {
		t.Errorf("status %q", lines)
	}
	if f := b.examineQdrant(t.Context()); len(f) != 1 || f[0].State != well || !strings.Contains(f[0].What, "vectors of 3 memories") {
		t.Errorf("the doctor says %+v", f)
	}
	// At the command line, where no vectors are read.
	c := *b
	c.closers = nil
	if c.points, err = c.openPoints(nil, 0); err != nil {
		t.Fatal(err)
	}
	if c.memory, err = memory.Open(t.Context(), memory.Config{DB: b.db, Dir: cfg.Data, Backend: memory.Qdrant, Points: c.points}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.memory.Forget(t.Context(), operator(), hits[0].Entry.ID); err != nil {
		t.Fatal(err)
	}
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
