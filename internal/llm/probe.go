package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

const probeTimeout = 15 * time.Second

// Probe checks that the model called name can be reached and is there, without
// making it work: a local server loads nothing. The *Error it returns says what
// to do. A server that lists no models is asked for one word instead.
func (m *Models) Probe(ctx context.Context, name string) error {
	for _, mod := range m.models {
		if mod.Name == name {
			return mod.probe(ctx)
		}
	}
	return &Error{Kind: NotFound, Model: name, Err: errors.New("there is no such model under llm.models")}
}

func (m *model) probe(ctx context.Context) error {
	list, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	x := &exchange{client: m.client}
	models, err := api(m, x).ListModels(list)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && len(models.Models) > 0:
		return m.find(models.Models)
	case err != nil && list.Err() != nil:
		return m.advise(&failure{kind: TimedOut, text: fmt.Sprintf("%s did not answer within %s", m.place(), probeTimeout)})
	case x.status == 0 || x.status == http.StatusUnauthorized || x.status == http.StatusForbidden || x.status >= 500:
		return m.advise(m.judge(list, x, err))
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

// find looks for the model in its server's list.
func (m *model) find(models []openai.Model) error {
	var there []string
	for _, o := range models {
		// Ollama's "qwen3" is "qwen3:latest"; llama.cpp serves its one model under any name.
		if o.ID == m.Model || o.ID == m.Model+":latest" || o.OwnedBy == "llamacpp" {
			return nil
		}
		if len(there) < 8 {
			there = append(there, o.ID)
		}
	}
	if more := len(models) - len(there); more > 0 {
		there = append(there, fmt.Sprintf("and %d more", more))
	}
	return m.advise(&failure{kind: NotFound, text: fmt.Sprintf("%s has no model %q; it has: %s", m.place(), m.Model, strings.Join(there, ", "))})
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
