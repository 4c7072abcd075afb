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
	models []*model
	roles  map[string][]*model
	look   chan struct{} // wakes Run
}

// New returns the set of models that is configured; the names in its roles are those of models. It
// connects to nothing. No models at all is no fault: then every Complete fails and says so, and
// everything that needs no model works.
func New(cfg Config) *Models {
	cfg = withDefaults(cfg)
	m := &Models{cfg: cfg, roles: map[string][]*model{}, look: make(chan struct{}, 1)}
	client := newClient(cfg)
	byName := map[string]*model{}
	for _, c := range cfg.Models {
		mod := newModel(c, cfg, client)
		mod.look = m.look
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
		first := m.named(name)
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
	return namesOf(m.list(role))
}

func namesOf(models []*model) (names []string) {
	for _, mod := range models {
		names = append(names, mod.Name)
	}
	return names
}

// named is the model called name; nil = there is none.
func (m *Models) named(name string) *model {
	i := slices.IndexFunc(m.models, func(mod *model) bool { return mod.Name == name })
	if i < 0 {
		return nil
	}
	return m.models[i]
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
