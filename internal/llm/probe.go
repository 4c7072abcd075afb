package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const probeTimeout = 15 * time.Second

// Probe checks that the model name is reachable and installed, without loading it. Its *Error says
// what to do. A server without a list of models is asked for one word instead.
func (m *Models) Probe(ctx context.Context, name string) error {
	if mod := m.modelNamed(name); mod != nil {
		return mod.probe(ctx)
	}
	return &Error{Kind: NotFound, Model: name, Err: errors.New("there is no such model under llm.models")}
}

func (m *model) probe(ctx context.Context) error {
	list, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	raw, err := m.fetch(list, http.MethodGet, m.BaseURL+"/models", nil, maxDescription)
	var models struct {
		Data []modelEntry `json:"data"`
	}
	_ = json.Unmarshal(raw, &models) // anything else is an empty list
	var refused *serverError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(models.Data) > 0:
		return m.findIn(models.Data)
	case err != nil && list.Err() != nil:
		return m.withRemedy(&failure{kind: TimedOut, text: fmt.Sprintf("%s did not answer within %s", m.serverAddress(), probeTimeout)})
	case err != nil && (!errors.As(err, &refused) || refused.status == http.StatusUnauthorized ||
		refused.status == http.StatusForbidden || refused.status >= 500):
		return m.withRemedy(m.judge(list, err))
	}
	_, f := m.attempt(ctx, Request{Messages: []Message{{Role: User, Content: "Say hi."}}}, m.knownQuirks(), nil)
	switch {
	case f == nil || f.kind == Empty || f.quirk != 0: // it answers
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return m.withRemedy(f)
}

// modelEntry is an entry in a server's list of models.
type modelEntry struct {
	ID    string `json:"id"`
	Owner string `json:"owned_by"`
}

// findIn looks the model up in its server's list.
func (m *model) findIn(models []modelEntry) error {
	var there []string
	for _, o := range models {
		// Ollama's "qwen3" is "qwen3:latest"; llama.cpp serves its one model under any name.
		if o.ID == m.Model || o.ID == m.Model+":latest" || o.Owner == "llamacpp" {
			return nil
		}
		if len(there) < 8 {
			there = append(there, o.ID)
		}
	}
	if more := len(models) - len(there); more > 0 {
		there = append(there, fmt.Sprintf("and %d more", more))
	}
	return m.withRemedy(&failure{kind: NotFound,
		text: fmt.Sprintf("%s has no model %q; it has: %s", m.serverAddress(), m.Model, strings.Join(there, ", "))})
}

// withRemedy adds the remedy to a failure.
func (m *model) withRemedy(f *failure) *Error {
	remedy := map[Kind]string{
		Unreachable: "Start the server (for Ollama: ollama serve), or correct base_url.",
		TimedOut:    "See whether the server is busy, or whether base_url is another program's.",
		Denied:      "Correct api_key, or look at the account it belongs to.",
		NotFound:    "Correct model, or fetch it onto the server.",
		Garbled:     "Correct base_url: it must be the API, which usually ends in /v1.",
		RateLimited: "Try again later.",
	}[f.kind]
	switch u := m.url(); {
	case f.kind != NotFound:
	case u.Port() == "11434" && !strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		remedy = "Add /v1 to base_url."
	case u.Port() == "11434":
		remedy = "Fetch it: ollama pull " + m.Model
	case strings.Trim(u.Path, "/") == "":
		remedy = "Correct base_url: it usually ends in /v1."
	}
	return &Error{Kind: f.kind, Model: m.Name, Err: errors.New(strings.TrimSpace(m.redactSecrets(f.text) + ". " + remedy))}
}
