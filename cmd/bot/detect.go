package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// server is a language model that answered.
type server struct {
	Name  string // how to call it to a person
	URL   string // OpenAI-compatible, ends in /v1
	Key   string
	Model string
}

// localServers are the places where model servers listen by themselves, in the
// order in which they are asked.
var localServers = []server{
	{Name: "Ollama", URL: "http://127.0.0.1:11434/v1"},
	{Name: "llama.cpp", URL: "http://127.0.0.1:8080/v1"},
	{Name: "LM Studio", URL: "http://127.0.0.1:1234/v1"},
}

// detectModel returns the first language model that answers: the one the
// environment names, then the local servers. The one named must answer; with
// none at all it returns the rehearsal model.
func detectModel(ctx context.Context, getenv func(string) string) (server, error) {
	if url := strings.TrimRight(getenv("REVERIE_LLM_URL"), "/"); url != "" {
		s := server{Name: "REVERIE_LLM_URL", URL: url, Key: getenv("REVERIE_LLM_KEY"), Model: getenv("REVERIE_LLM_MODEL")}
		if url == rehearsalURL {
			return rehearsalServer(), nil
		}
		models, err := listModels(ctx, s, 10*time.Second)
		if err != nil && s.Model == "" {
			return server{}, fmt.Errorf("REVERIE_LLM_URL: %w; check that it is an OpenAI-compatible address ending in /v1, or name the model in REVERIE_LLM_MODEL", err)
		}
		return s.with(models), nil
	}
	for _, s := range localServers {
		models, err := listModels(ctx, s, time.Second)
		if err == nil && len(models) > 0 {
			return s.with(models), nil
		}
	}
	return rehearsalServer(), nil
}

func rehearsalServer() server {
	return server{Name: "the rehearsal model", URL: rehearsalURL, Model: "rehearsal"}
}

// with chooses the first model that can chat, unless one is named already.
func (s server) with(models []string) server {
	for _, m := range models {
		if s.Model == "" && !strings.Contains(strings.ToLower(m), "embed") {
			s.Model = m
		}
	}
	return s
}

func listModels(ctx context.Context, s server, limit time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/models", nil)
	if err != nil {
		return nil, err
	}
	if s.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.Key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s/models answered %s", s.URL, res.Status)
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(io.LimitReader(res.Body, 4<<20)).Decode(&list); err != nil {
		return nil, fmt.Errorf("%s/models answered something else than a list of models", s.URL)
	}
	var names []string
	for _, d := range list.Data {
		names = append(names, d.ID)
	}
	return names, nil
}
