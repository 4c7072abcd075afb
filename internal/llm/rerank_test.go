package llm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"reverie/internal/test/expect"
)

func TestRerank(t *testing.T) {
	const good = `{"model":"m","results":[{"index":1,"relevance_score":-3.5},{"index":2,"relevance_score":7},{"index":0,"relevance_score":-3.5}]}`
	texts := []string{"a cat", "a dog", "the ship is in the harbour"}
	rerank := func(status1 int, body1 string) ([]int, *scripted, error) {
		s := script(t, status(status1, body1))
		m := New(Config{Models: []ModelConfig{{Name: "chat", BaseURL: s.URL + "/v1", Model: "x"}, {Name: "r", BaseURL: s.URL + "/v1", Model: "bge"}},
			Roles: map[string][]string{"chat": {"chat"}, "rerank": {"r"}}})
		order, err := m.Rerank(t.Context(), "where is the ship?", texts)
		return order, s, err
	}
	order, s, err := rerank(200, good)
	expect.OK(t, err)
	expect.EqualSlice(t, order, []int{2, 0, 1})
	if b := s.body(0); fmt.Sprintf("%v %v %v %v", b["query"], b["documents"], b["model"], b["top_n"]) != "where is the ship? [a cat a dog the ship is in the harbour] bge 3" {
		t.Errorf("request %v", b)
	}
	for body, says := range map[string]string{
		`{"results":[{"index":0,"relevance_score":1},{"index":1,"relevance_score":1}]}`:                                  "no ranking of 3 texts",
		`{"results":[{"index":0,"relevance_score":1},{"index":1,"relevance_score":1},{"index":1,"relevance_score":1}]}`:  "no score for each",
		`{"results":[{"index":0,"relevance_score":1},{"index":1,"relevance_score":1},{"index":3,"relevance_score":1}]}`:  "no score for each",
		`{"results":[{"index":0,"relevance_score":1},{"index":1,"relevance_score":1},{"index":-1,"relevance_score":1}]}`: "no score for each",
		`{"results":[{"index":0,"relevance_score":1},{"index":1,"relevance_score":1},{"index":2}]}`:                      "no score for each",
		`{"results":[{"index":0,"relevance_score":"much"}]}`:                                                             "no ranking of 3 texts",
		`<!doctype html>`:         "no ranking of 3 texts",
		`{"choices":[]}`:          "no ranking of 3 texts",
		`[{"index":0,"score":1}]`: "no ranking of 3 texts",
	} {
		if order, _, err := rerank(200, body); order != nil || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v; want an error with %q", body, order, err, says)
		}
	}
	var failed *Error
	if _, _, err := rerank(501, `{"error":{"message":"This server does not support reranking. Start it with --reranking"}}`); !errors.As(err, &failed) || !strings.Contains(err.Error(), "--reranking") {
		t.Errorf("error %v", err)
	}
}

// TestRerankHasItsOwnModels: a chat model does not stand in.
func TestRerankHasItsOwnModels(t *testing.T) {
	s := script(t, status(500, ""))
	m := New(Config{Models: []ModelConfig{{Name: "chat", BaseURL: s.URL + "/v1", Model: "x"}}, Roles: map[string][]string{"chat": {"chat"}}})
	_, err := m.Rerank(t.Context(), "?", []string{"a", "b"})
	expect.ErrorContains(t, err, "llm.roles.rerank")
	expect.False(t, m.Has("rerank") || s.requests() > 0, "a chat model was asked")
}
