// Package detect asks a model server how many tokens its model reads. It knows what llama.cpp, LM Studio, Ollama,
// vLLM and hosted services say, and where.
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

// DefaultWindow is how many tokens a model is taken to read where nobody says anything.
const DefaultWindow = 8192

// Label says how far a Limit can be trusted.
type Label string

// The labels, from the surest on.
const (
	Enforced  Label = "enforced"  // the server loaded the model so, or refused more; or the configuration says it
	Max       Label = "max"       // the most that a hosted model takes, as its server says
	Estimated Label = "estimated" // likely, by what such servers or models do
	Default   Label = "default"   // nothing is known
)

// Limit is how many tokens a model reads and writes together.
type Limit struct {
	Tokens int       `json:"tokens"`
	Label  Label     `json:"label"`
	Source string    `json:"source"` // who said so, such as "ollama /api/ps"
	At     time.Time `json:"at"`     // when; zero for what is configured or nobody said
	// Least marks an estimate that is only what such a server loads at least.
	Least bool `json:"least,omitempty"`
}

// String is the limit in words.
func (l Limit) String() string {
	return fmt.Sprintf("%d tokens (%s: %s)", l.Tokens, l.Label, l.Source)
}

// Found is what is known of a model's window and how that came to be known.
type Found struct {
	Model string   `json:"model"` // configured name
	Limit Limit    `json:"limit"`
	Steps []string `json:"steps"` // one per source asked: what it said, and at last which won

	Server  string `json:"server,omitempty"`  // the program that loads the model itself, such as Ollama; "" = another, or not known
	Trained int    `json:"trained,omitempty"` // the most that the model reads, whatever it is loaded with; 0 = not said
	// Answered is false when the server was not asked, or said nothing at all.
	Answered bool `json:"answered"`
	Outside  int  `json:"outside,omitempty"` // percent of the loaded model that found no room on the GPU

	Sees *bool `json:"-"` // whether the model can be shown pictures; nil = not said
}

// Server is a model on its server.
type Server struct {
	BaseURL string // up to and including /v1
	Model   string // how the server calls it
	Wait    time.Duration
	// Fetch makes a request. answered tells that the server did, if only to refuse.
	Fetch func(ctx context.Context, method, url string, body []byte) (raw []byte, answered bool, err error)
}

// smallest is what a local server loads when nobody told it anything else.
const smallest = 4096 // tokens, of Ollama on a small machine and of LM Studio

// source is one endpoint.
type source struct {
	name   string
	method string
	url    string
	body   string
	read   func(raw []byte, model string) (found Found, text string, err error) // text says it in words
}

// sources lists whom to ask, the surest first.
func (s Server) sources() []source {
	root := strings.TrimSuffix(s.BaseURL, "/v1")
	name, _ := json.Marshal(s.Model) // a text
	return []source{
		// Where one server has several models, asking must not make it load one.
		{"llama.cpp /props", http.MethodGet, root + "/props?autoload=false&model=" + url.QueryEscape(s.Model), "", readProps},
		{"lm studio /api/v0/models", http.MethodGet, root + "/api/v0/models", "", readLMStudio},
		{"ollama /api/ps", http.MethodGet, root + "/api/ps", "", readPS},
		{"/v1/models", http.MethodGet, s.BaseURL + "/models", "", readList},
		{"ollama /api/show", http.MethodPost, root + "/api/show", `{"model":` + string(name) + `}`, readShow},
	}
}

// Ask asks all sources at once and decides.
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
			answers[i], text = s.hear(ctx, from)
			steps[i] = from.name + ": " + text
			return nil
		})
	}
	_ = g.Wait() // none of them fails
	found := decide(answers)
	found.Steps = steps
	return found
}

// hear asks one source, and says in words what came.
func (s Server) hear(ctx context.Context, from source) (found Found, text string) {
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

// decide takes the surest of what was said; answers are in the order of sources.
func decide(answers []Found) Found {
	var f Found
	loaded, likely := Limit{}, Limit{}
	for _, a := range answers {
		f.Answered = f.Answered || a.Answered
		f.Outside = max(f.Outside, a.Outside)
		f.Server, f.Sees = cmp.Or(f.Server, a.Server), cmp.Or(f.Sees, a.Sees)
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
	case loaded.Tokens > 0: // it may be more than the model was trained for, and holds all the same
		f.Limit = loaded
	case likely.Tokens > 0:
		f.Limit = capped(likely)
	case f.Server == Ollama || f.Server == lmStudio:
		f.Limit = capped(Limit{Tokens: smallest, Label: Estimated, Source: "what " + f.Server + " loads by itself at least", Least: true})
	case f.Server != "":
		if f.Trained > 0 && f.Trained < DefaultWindow {
			f.Limit = Limit{Tokens: f.Trained, Label: Estimated, Source: "the model reads no more"}
		}
	}
	return f
}

// The programs that load models themselves, as Server of what was found.
const (
	Ollama   = "Ollama"
	lmStudio = "LM Studio"
	llamaCPP = "llama.cpp"
)
