package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEmbeddingConfig(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("sk-hunter4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parse(t, dir, small+`  embedding: {base_url: "http://127.0.0.1:11434/api", model: nomic-embed-text, api_key_file: key, timeout: 9s}`)
	if err != nil {
		t.Fatal(err)
	}
	if e := c.LLM.Embedding; *e != (EmbeddingConfig{"http://127.0.0.1:11434/api", "nomic-embed-text", "sk-hunter4", "key", 9 * time.Second}) {
		t.Errorf("read as %#v", e)
	}
	if len(c.LLM.Roles["chat"]) != 1 {
		t.Errorf("chat is done by %v", c.LLM.Roles["chat"])
	}
	if e, err := c.embedding(nil); err != nil || e.Name() != "nomic-embed-text" {
		t.Errorf("model %v, %v", e, err)
	}
	c, err = parse(t, dir, small)
	if err != nil || c.LLM.Embedding != nil {
		t.Fatalf("without the section: %v, %v", c.LLM.Embedding, err)
	}
	if e, err := c.embedding(nil); e != nil || err != nil {
		t.Errorf("model %v, %v", e, err)
	}

	_, err = parse(t, dir, small+`  embedding: {base_url: "http://127.0.0.1:11434/api/embed", timeout: -1s, window: 5, api_key: x, api_key_file: key}`)
	for _, want := range []string{
		"config.yaml:4: llm.embedding.window: unknown key; known here: base_url, model, api_key, api_key_file, timeout",
		"llm.embedding.base_url: leave out the last part",
		"llm.embedding.model: missing",
		"llm.embedding.timeout: write how long",
		"llm.embedding.api_key_file: the secret is given twice",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

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
