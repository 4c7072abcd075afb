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

// Probe checks that the model called name can be reached and is there, without
// making it work: a local server loads nothing. The *Error it returns says what
// to do. A server that lists no models is asked for one word instead.
func (m *Models) Probe(ctx context.Context, name string) error {
	if mod := m.named(name); mod != nil {
		return mod.probe(ctx)
	}
	return &Error{Kind: NotFound, Model: name, Err: errors.New("there is no such model under llm.models")}
}

func (m *model) probe(ctx context.Context) error {
	list, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	raw, err := m.fetch(list, http.MethodGet, m.BaseURL+"/models", nil, maxSaid)
	var models struct {
		Data []listed `json:"data"`
	}
	_ = json.Unmarshal(raw, &models) // what is no list is an empty one
	var refused *serverError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(models.Data) > 0:
		return m.find(models.Data)
	case err != nil && list.Err() != nil:
		return m.advise(&failure{kind: TimedOut, text: fmt.Sprintf("%s did not answer within %s", m.place(), probeTimeout)})
	case err != nil && (!errors.As(err, &refused) || refused.status == http.StatusUnauthorized ||
		refused.status == http.StatusForbidden || refused.status >= 500):
		return m.advise(m.judge(list, err))
	}
	_, f := m.once(ctx, Request{Messages: []Message{{Role: User, Content: "Say hi."}}}, m.known(), nil)
	switch {
	case f == nil || f.kind == Empty || f.quirk != 0: // it is there and answers
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return m.advise(f)
}

// listed is an entry of a server's list of models.
type listed struct {
	ID    string `json:"id"`
	Owner string `json:"owned_by"`
}

// find looks for the model in its server's list.
func (m *model) find(models []listed) error {
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
	return m.advise(&failure{kind: NotFound,
		text: fmt.Sprintf("%s has no model %q; it has: %s", m.place(), m.Model, strings.Join(there, ", "))})
}

// advise adds to a failure what to do about it.
func (m *model) advise(f *failure) *Error {
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
	return &Error{Kind: f.kind, Model: m.Name, Err: errors.New(strings.TrimSpace(m.clean(f.text) + ". " + remedy))}
}
