package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"reverie/internal/llm/detect"
)

// What holds where the configuration says nothing.
const (
	defaultMaxOutput = 2048 // tokens
	defaultTimeout   = 300 * time.Second
	defaultRole      = "chat"
	connectTime      = 10 * time.Second // to reach a server
)

// Models is the set of configured models. It is safe for concurrent use.
type Models struct {
	cfg    Config
	log    *slog.Logger
	models []*model
	roles  map[string][]*model
	look   chan struct{} // wakes Run
}

// New checks the configuration and reports all its faults at once, joined. It
// connects to nothing. No models at all is no fault: then every Complete fails
// and says so, and everything that needs no model works.
func New(cfg Config) (*Models, error) {
	cfg = withDefaults(cfg)
	m := &Models{cfg: cfg, log: cfg.Log, roles: map[string][]*model{}, look: make(chan struct{}, 1)}
	client := newClient(cfg)
	var faults []error
	byName := map[string]*model{}
	for i, c := range cfg.Models {
		c.APIKey = strings.TrimSpace(c.APIKey) // a key from a file ends in a line end
		at := fmt.Sprintf("llm.models[%d]", i)
		faults = append(faults, checkModel(at, c)...)
		if c.Name != "" && byName[c.Name] != nil {
			faults = append(faults, fmt.Errorf("%s.name: %q is the name of another model already", at, c.Name))
		}
		mod := newModel(c, cfg, client)
		mod.look = m.look
		byName[c.Name] = mod
		m.models = append(m.models, mod)
	}
	for _, role := range slices.Sorted(maps.Keys(cfg.Roles)) {
		for i, name := range cfg.Roles[role] {
			mod := byName[name]
			if mod == nil {
				faults = append(faults, fmt.Errorf("llm.roles.%s[%d]: there is no model %q", role, i, name))
				continue
			}
			m.roles[role] = append(m.roles[role], mod)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return m, nil
}

func checkModel(at string, c ModelConfig) (faults []error) {
	if c.Name == "" {
		faults = append(faults, fmt.Errorf("%s.name: missing", at))
	}
	if c.Model == "" {
		faults = append(faults, fmt.Errorf("%s.model: missing (the model's name on its server, such as qwen3:8b)", at))
	}
	u, err := url.Parse(c.BaseURL)
	switch {
	case c.BaseURL == "":
		faults = append(faults, fmt.Errorf("%s.base_url: missing (such as http://127.0.0.1:11434/v1)", at))
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		faults = append(faults, fmt.Errorf("%s.base_url: must be an http or https address, such as http://127.0.0.1:11434/v1", at))
	case u.RawQuery != "" || u.Fragment != "":
		faults = append(faults, fmt.Errorf("%s.base_url: must end with the path (…/v1), without ? or #", at))
	}
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		faults = append(faults, fmt.Errorf("%s.api_key: holds a blank or control character", at))
	}
	if c.Window < 0 || c.MaxOutput < 0 || c.Timeout < 0 {
		faults = append(faults, fmt.Errorf("%s: window, max_output and timeout must not be negative", at))
	}
	if c.Window > 0 && c.MaxOutput >= c.Window {
		faults = append(faults, fmt.Errorf("%s.max_output: must be smaller than the window of %d tokens", at, c.Window))
	}
	if t := c.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		faults = append(faults, fmt.Errorf("%s.temperature: must be from 0 to 2", at))
	}
	return faults
}

func withDefaults(cfg Config) Config {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.FirstToken = cmp.Or(cfg.FirstToken, 120*time.Second)
	cfg.Idle = cmp.Or(cfg.Idle, 60*time.Second)
	cfg.Detect = cmp.Or(cfg.Detect, 2*time.Second)
	cfg.Retry.Attempts = cmp.Or(cfg.Retry.Attempts, 3)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Retry.Sleep == nil {
		cfg.Retry.Sleep = sleep
	}
	return cfg
}

// newClient makes the HTTP client of all models of a set. It has no timeout of
// its own: an answer may take minutes, and each request watches the time.
func newClient(cfg Config) *http.Client {
	if cfg.HTTP == nil {
		usual := http.DefaultTransport.(*http.Transport).Clone()
		usual.DialContext = (&net.Dialer{Timeout: connectTime}).DialContext
		cfg.HTTP = usual
	}
	return &http.Client{Transport: cfg.HTTP, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Preferring is the role in which the model called name is asked first, and the
// models of role after it. Where there is no such model it is as role.
func Preferring(role, name string) string {
	if name == "" {
		return role
	}
	return role + preferring + name
}

const preferring = "@" // no role has it in its name

// list is the failover list of a role: its own, else that of "chat", else all
// models as configured; a preferred one before them.
func (m *Models) list(role string) []*model {
	if plain, name, ok := strings.Cut(role, preferring); ok {
		others := m.list(plain)
		i := slices.IndexFunc(m.models, func(mod *model) bool { return mod.Name == name })
		if i < 0 {
			return others
		}
		first := m.models[i]
		return append([]*model{first}, slices.DeleteFunc(slices.Clone(others), func(mod *model) bool { return mod == first })...)
	}
	if l := m.roles[role]; len(l) > 0 {
		return l
	}
	if l := m.roles[defaultRole]; len(l) > 0 {
		return l
	}
	return m.models
}

// Names lists the configured models, in the configured order.
func (m *Models) Names() []string {
	names := make([]string, len(m.models))
	for i, mod := range m.models {
		names[i] = mod.Name
	}
	return names
}

// Role lists the models of a role, in failover order.
func (m *Models) Role(role string) []string {
	var names []string
	for _, mod := range m.list(role) {
		names = append(names, mod.Name)
	}
	return names
}

// Window returns the context window of the role's first model and how much of
// it is kept for its answer, in tokens: the configured one, else the detected one, else
// 8192. It asks nobody: Detect and Run do. Limits says where the number is from.
func (m *Models) Window(role string) (window, maxOutput int) {
	l := m.list(role)
	if len(l) == 0 {
		return detect.DefaultWindow, defaultMaxOutput
	}
	return l[0].window()
}

// Complete asks the models of a role, in failover order, until one answers. An
// unknown role is "chat". The answer streams: stream (which may be nil) gets the
// whole visible text so far each time it has grown; when a request is made again,
// or by the next model, that text begins anew. Thinking reaches neither stream
// nor Reply.
//
// A cancelled ctx ends it at once with ctx's error. Any other failure is an
// *Error: that of the role's first model, because it is the one to be repaired;
// but TooLarge from any of them goes first, because the caller can mend that.
func (m *Models) Complete(ctx context.Context, role string, req Request, stream func(textSoFar string)) (Reply, error) {
	list := m.list(role)
	if len(list) == 0 {
		return Reply{}, &Error{Kind: NotFound, Err: errors.New("no model is configured: add one under llm.models")}
	}
	var failed []*Error
	for _, mod := range list {
		reply, err := mod.ask(ctx, req, stream)
		if err == nil {
			return mod.fitted(ctx, req, reply), nil
		}
		if ctx.Err() != nil {
			return Reply{}, ctx.Err()
		}
		failed = append(failed, err)
	}
	first := failed[0]
	for _, e := range failed {
		if e.Kind == TooLarge && first.Kind != TooLarge {
			first = e
		}
	}
	if len(failed) > 1 {
		causes := make([]error, len(failed))
		for i, e := range failed {
			causes[i] = fmt.Errorf("%s: %s: %w", e.Model, e.Kind, e.Err)
		}
		first = &Error{Kind: first.Kind, Model: first.Model, Err: errors.Join(causes...)}
	}
	return Reply{}, first
}
