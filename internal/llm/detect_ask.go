package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// maxSaid is how many bytes of a server's description are read. The longest
// known, a list of all models of a hosted service, is a quarter of it.
const maxSaid = 8 << 20

// smallest is what a local server loads when nobody told it anything else.
const smallest = 4096 // tokens, of Ollama on a small machine and of LM Studio

// said is what one endpoint said of one model. The zero value is nothing.
type said struct {
	reached bool     // an HTTP answer came, whatever it was
	limit   Limit    // Source is filled in by the inquiry
	trained int      // the model's own maximum: the server may have loaded it with less
	outside int      // percent of the loaded model that is not on the GPU
	held    uint64   // bytes of it that are
	files   []string // on the server's machine: the model's, and those loaded with it
	server  string   // which program this is, where the answer shows it
	sees    *bool    // whether the model can be shown pictures; nil = not said
	text    string   // the answer in words
}

// source is one endpoint.
type source struct {
	name   string
	method string
	url    string
	body   string
	read   func(raw []byte, model string) (said, error)
}

// hosted are services that are known to be none of the local programs: these
// are asked for their list of models only.
var hosted = []string{
	"openai.com", "azure.com", "anthropic.com", "openrouter.ai", "groq.com", "googleapis.com", "mistral.ai",
	"deepseek.com", "x.ai", "together.xyz", "fireworks.ai", "moonshot.ai", "moonshot.cn",
}

func isHosted(host string) bool {
	return slices.ContainsFunc(hosted, func(h string) bool { return host == h || strings.HasSuffix(host, "."+h) })
}

// sources lists whom to ask, the surest first.
func (m *model) sources() []source {
	list := source{"/v1/models", http.MethodGet, m.BaseURL + "/models", "", readList}
	if isHosted(m.url().Hostname()) {
		return []source{list}
	}
	root := strings.TrimSuffix(m.BaseURL, "/v1")
	name, _ := json.Marshal(m.Model) // a text
	return []source{
		// Where one server has several models, asking must not make it load one.
		{"llama.cpp /props", http.MethodGet, root + "/props?autoload=false&model=" + url.QueryEscape(m.Model), "", readProps},
		{"lm studio /api/v0/models", http.MethodGet, root + "/api/v0/models", "", readLMStudio},
		{"ollama /api/ps", http.MethodGet, root + "/api/ps", "", readPS},
		list,
		{"ollama /api/show", http.MethodPost, root + "/api/show", `{"model":` + string(name) + `}`, readShow},
	}
}

// inquire asks all sources at once and decides.
func (m *model) inquire(ctx context.Context) Detection {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Detect)
	defer cancel()
	sources := m.sources()
	answers := make([]said, len(sources))
	steps := make([]string, len(sources))
	var g errgroup.Group
	for i, s := range sources {
		g.Go(func() error {
			answers[i], steps[i] = m.hear(ctx, s)
			return nil
		})
	}
	_ = g.Wait() // none of them fails
	found := decide(answers)
	found.Steps = steps
	return found
}

// hear asks one source, and says in words what came.
func (m *model) hear(ctx context.Context, s source) (said, string) {
	raw, err := m.fetch(ctx, s.method, s.url, []byte(s.body), maxSaid)
	var a said
	var refused *serverError
	reached := err == nil || errors.As(err, &refused)
	if err == nil {
		a, err = s.read(raw, m.Model)
	}
	a.reached = reached
	switch {
	case refused != nil:
		a.text = fmt.Sprintf("%d %s", refused.status, http.StatusText(refused.status))
	case errors.Is(err, context.DeadlineExceeded):
		a.text = fmt.Sprintf("no answer within %s", m.cfg.Detect)
	case err != nil:
		a.text = err.Error()
	}
	a.limit.Source = s.name
	return a, m.clean(s.name + ": " + a.text)
}

// decide takes the surest of what was said; answers are in the order of sources.
func decide(answers []said) Detection {
	var f Detection
	loaded, likely := Limit{}, Limit{}
	for _, a := range answers {
		f.Answered = f.Answered || a.reached
		f.Outside, f.Held = max(f.Outside, a.outside), max(f.Held, a.held)
		f.Server = cmp.Or(f.Server, a.server)
		if f.Files == nil {
			f.Files = a.files
		}
		f.sees = cmp.Or(f.sees, a.sees)
		if a.trained > 0 && (f.Trained == 0 || a.trained < f.Trained) {
			f.Trained = a.trained
		}
		switch {
		case a.limit.Tokens == 0:
		case a.limit.Label == Enforced && loaded.Tokens == 0:
			loaded = a.limit
		case a.limit.Label != Enforced && likely.Tokens == 0:
			likely = a.limit
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
	case f.Server == ollama || f.Server == lmStudio:
		f.Limit = capped(Limit{Tokens: smallest, Label: Estimated, Source: "what " + f.Server + " loads by itself at least", Least: true})
	case f.Server != "":
		if f.Trained > 0 && f.Trained < defaultWindow {
			f.Limit = Limit{Tokens: f.Trained, Label: Estimated, Source: "the model reads no more"}
		}
	}
	return f
}

// The programs that load models themselves.
const (
	ollama   = "Ollama"
	lmStudio = "LM Studio"
	llamaCPP = "llama.cpp"
)
