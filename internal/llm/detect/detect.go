// Package detect asks a model server for its model's context window. It knows the endpoints of
// llama.cpp, LM Studio, Ollama, vLLM and hosted services. It makes no model load.
package detect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// DefaultWindow is the assumed window, in tokens, when no server names one.
const DefaultWindow = 8192

// Label says how reliable a Limit is.
type Label string

// The labels, from the most reliable on.
const (
	Enforced  Label = "enforced"  // the loaded model's or the configuration's window, or one learned from a refusal
	Max       Label = "max"       // the maximum of a hosted model, by its server
	Estimated Label = "estimated" // inferred from the kind of server or model
	Default   Label = "default"   // unknown
)

// Limit is a context window: the tokens of a request and its answer together.
type Limit struct {
	Tokens int       `json:"tokens"`
	Label  Label     `json:"label"`
	Source string    `json:"source"` // where it is from, such as "ollama /api/ps"
	At     time.Time `json:"at"`     // zero if configured or unknown
	// LowerBound marks an estimate that is only a lower bound.
	LowerBound bool `json:"least,omitempty"`
}

// String describes the limit in words.
func (l Limit) String() string {
	return fmt.Sprintf("%d tokens (%s: %s)", l.Tokens, l.Label, l.Source)
}

// Found is the result of a detection.
type Found struct {
	Model string   `json:"model"` // configured name
	Limit Limit    `json:"limit"`
	Steps []string `json:"steps"` // a line for each source, then the decision

	Server  string `json:"server,omitempty"`  // the program that loads the model, such as Ollama; "" = another or unknown
	Trained int    `json:"trained,omitempty"` // the window that the model was trained with; 0 = unknown
	// Answered is false if the server was not asked or did not answer.
	Answered bool `json:"answered"`
	OffGPU   int  `json:"outside,omitempty"` // percent of the loaded model that is not on the GPU

	Vision *bool `json:"-"` // whether the model accepts pictures; nil = unknown
}

// Server is a model on its server.
type Server struct {
	BaseURL string // up to and including /v1
	Model   string // name of the model on the server
	Wait    time.Duration
	// Fetch makes a request. answered is also true of a refusal.
	Fetch func(ctx context.Context, method, url string, body []byte) (raw []byte, answered bool, err error)
}

// minLoaded is the window that local servers load by default.
const minLoaded = 4096 // tokens, of Ollama on a small machine and of LM Studio

// source is one endpoint.
type source struct {
	name   string
	method string
	url    string
	body   string
	read   func(raw []byte, model string) (found Found, text string, err error) // text describes it
}

// sources lists the endpoints, the most reliable first.
func (s Server) sources() []source {
	root := strings.TrimSuffix(s.BaseURL, "/v1")
	name, _ := json.Marshal(s.Model) // a text
	return []source{
		// On a server with several models, the request must not load one.
		{"llama.cpp /props", http.MethodGet, root + "/props?autoload=false&model=" + url.QueryEscape(s.Model), "", readProps},
		{"lm studio /api/v0/models", http.MethodGet, root + "/api/v0/models", "", readLMStudio},
		{"ollama /api/ps", http.MethodGet, root + "/api/ps", "", readPS},
		{"/v1/models", http.MethodGet, s.BaseURL + "/models", "", readList},
		{"ollama /api/show", http.MethodPost, root + "/api/show", `{"model":` + string(name) + `}`, readShow},
	}
}

// Ask queries all sources concurrently and combines their answers.
func (s Server) Ask(ctx context.Context) Found {
	ctx, cancel := context.WithTimeout(ctx, s.Wait)
	defer cancel()
	sources := s.sources()
	answers := make([]Found, len(sources))
	steps := make([]string, len(sources))
	var g errgroup.Group
	for i, from := range sources {
		g.Go(func() error {
			text := ""
			answers[i], text = s.query(ctx, from)
			steps[i] = from.name + ": " + text
			return nil
		})
	}
	_ = g.Wait() // it never returns an error
	found := decide(answers)
	found.Steps = steps
	return found
}

// query queries one source and describes its answer.
func (s Server) query(ctx context.Context, from source) (found Found, text string) {
	raw, answered, err := s.Fetch(ctx, from.method, from.url, []byte(from.body))
	if err == nil {
		found, text, err = from.read(raw, s.Model)
	}
	found.Answered, found.Limit.Source = answered, from.name
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		text = fmt.Sprintf("no answer within %s", s.Wait)
	case err != nil:
		text = err.Error()
	}
	return found, text
}

// decide picks the most reliable answer; answers are in the order of sources.
func decide(answers []Found) Found {
	var f Found
	loaded, likely := Limit{}, Limit{}
	for _, a := range answers {
		f.Answered = f.Answered || a.Answered
		f.OffGPU = max(f.OffGPU, a.OffGPU)
		f.Server, f.Vision = cmp.Or(f.Server, a.Server), cmp.Or(f.Vision, a.Vision)
		if a.Trained > 0 && (f.Trained == 0 || a.Trained < f.Trained) {
			f.Trained = a.Trained
		}
		switch {
		case a.Limit.Tokens == 0:
		case a.Limit.Label == Enforced && loaded.Tokens == 0:
			loaded = a.Limit
		case a.Limit.Label != Enforced && likely.Tokens == 0:
			likely = a.Limit
		}
	}
	capped := func(l Limit) Limit {
		if f.Trained > 0 && f.Trained < l.Tokens {
			l.Tokens = f.Trained
			l.Source += ", and the model reads no more"
		}
		return l
	}
	switch {
	case loaded.Tokens > 0: // it holds even above the trained window
		f.Limit = loaded
	case likely.Tokens > 0:
		f.Limit = capped(likely)
	case f.Server == Ollama || f.Server == lmStudio:
		f.Limit = capped(Limit{Tokens: minLoaded, Label: Estimated, LowerBound: true,
			Source: "what " + f.Server + " loads by itself at least"})
	case f.Server != "" && f.Trained > 0 && f.Trained < DefaultWindow:
		f.Limit = Limit{Tokens: f.Trained, Label: Estimated, Source: "the model reads no more"}
	}
	return f
}

// The servers that load models themselves, as in Found.Server.
const (
	Ollama   = "Ollama"
	lmStudio = "LM Studio"
	llamaCPP = "llama.cpp"
)
