package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"reverie/internal/llm/detect"
	"reverie/internal/pace"
)

// Defaults of the configuration.
const (
	defaultMaxOutput = 2048 // tokens
	defaultTimeout   = 300 * time.Second
	defaultRole      = "chat"
	connectTimeout   = 10 * time.Second // to reach a server
)

// Models is the set of configured models. It is safe for concurrent use.
type Models struct {
	cfg     Config
	models  []*model
	roles   map[string][]*model
	wakeRun chan struct{} // wakes Run
}

// New returns the models of cfg, whose roles name its models. It opens no connection. Without
// models every Complete fails and says so; the rest of the program works.
func New(cfg Config) *Models {
	cfg = withDefaults(cfg)
	m := &Models{cfg: cfg, roles: map[string][]*model{}, wakeRun: make(chan struct{}, 1)}
	client := newClient(cfg)
	byName := map[string]*model{}
	for _, c := range cfg.Models {
		mod := newModel(c, cfg, client)
		mod.wakeRun = m.wakeRun
		byName[c.Name] = mod
		m.models = append(m.models, mod)
	}
	for role, names := range cfg.Roles {
		for _, name := range names {
			m.roles[role] = append(m.roles[role], byName[name])
		}
	}
	return m
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

// newClient returns the HTTP client that all models share. It has no timeout: an answer may take
// minutes, and each request has its own deadlines.
func newClient(cfg Config) *http.Client {
	if cfg.HTTP == nil {
		usual := http.DefaultTransport.(*http.Transport).Clone()
		usual.DialContext = (&net.Dialer{Timeout: connectTimeout}).DialContext
		usual.MaxIdleConnsPerHost = usual.MaxIdleConns // the usual 2 are fewer than the requests at a time
		cfg.HTTP = usual
	}
	return &http.Client{Transport: cfg.HTTP, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func sleep(ctx context.Context, d time.Duration) error { return pace.Pause(ctx, nil, d) }

// Preferring returns the role that asks the model name first, then the models of role. An unknown
// name is ignored.
func Preferring(role, name string) string {
	if name == "" {
		return role
	}
	return role + preferring + name
}

const preferring = "@" // not allowed in role names

// failoverList returns the failover list of a role: its own, else that of "chat", else all models. A
// preferred model comes first.
func (m *Models) failoverList(role string) []*model {
	if plain, name, ok := strings.Cut(role, preferring); ok {
		others := m.failoverList(plain)
		first := m.modelNamed(name)
		if first == nil {
			return others
		}
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
	return namesOf(m.models)
}

// Role lists the models of a role, in failover order.
func (m *Models) Role(role string) []string {
	return namesOf(m.failoverList(role))
}

// Has reports whether a role has models of its own. No other models do the work of the roles transcription
// and rerank.
func (m *Models) Has(role string) bool { return len(m.roles[role]) > 0 }

// askInTurn asks a role's own models until one answers. An error is ctx's, or the
// *Error of the first model.
func askInTurn[T any](ctx context.Context, m *Models, role string, ask func(*model) (T, *Error)) (T, error) {
	first := &Error{Kind: NotFound, Err: fmt.Errorf("no model is configured for it: add one under llm.roles.%s", role)}
	for i, mod := range m.roles[role] {
		answer, failed := ask(mod)
		if failed == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return answer, ctx.Err()
		}
		m.cfg.Log.Warn("model failed", "model", mod.Name, "role", role, "error", failed.Err)
		if i == 0 {
			first = failed
		}
	}
	var none T
	return none, first
}

func namesOf(models []*model) (names []string) {
	for _, mod := range models {
		names = append(names, mod.Name)
	}
	return names
}

// modelNamed returns the model called name, or nil.
func (m *Models) modelNamed(name string) *model {
	i := slices.IndexFunc(m.models, func(mod *model) bool { return mod.Name == name })
	if i < 0 {
		return nil
	}
	return m.models[i]
}

// Window returns the context window of the role's first model, in tokens. maxOutput is the part
// reserved for its answer. The window is configured, else detected, else 8192. Window sends no
// request; Limits names the source of the figure.
func (m *Models) Window(role string) (window, maxOutput int) {
	l := m.failoverList(role)
	if len(l) == 0 {
		return detect.DefaultWindow, defaultMaxOutput
	}
	return l[0].window()
}

// Complete asks the models of a role, in failover order, until one answers. An unknown role means
// "chat". stream, which may be nil, receives the whole visible text each time it has grown; after a
// retry or failover the text starts over. Thinking reaches neither stream nor Reply.
//
// When ctx ends, its error is returned. Any other failure is an *Error, that of the role's first
// model. A TooLarge of any model takes precedence, because the caller can shorten the request.
func (m *Models) Complete(ctx context.Context, role string, req Request, stream func(textSoFar string)) (Reply, error) {
	list := m.failoverList(role)
	if len(list) == 0 {
		return Reply{}, &Error{Kind: NotFound, Err: errors.New("no model is configured: add one under llm.models")}
	}
	var failed []*Error
	for _, mod := range list {
		reply, err := mod.complete(ctx, req, stream)
		if err == nil {
			return mod.fitArguments(ctx, req, reply), nil
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
