package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/llm/detect"
)

// How long what a server said is taken for true before it is asked again. It
// is asked after an answer only: a server that nobody uses is left alone.
const (
	freshGuess  = time.Minute      // the model was not loaded: its first answer changes that
	freshLoaded = 10 * time.Minute // somebody may load it anew in another size, or start a server that can tell
	freshHosted = 6 * time.Hour
	keepLearned = 6 * time.Hour // what an error taught; then one request may fail again

	lookEvery = time.Minute // for servers that never answered
)

// windows is what a model knows of its window. The model's mu guards it.
type windows struct {
	asked   time.Time    // when the server was last asked; zero = never
	found   detect.Found // what came of it; Limit.Tokens 0 = nothing is known
	learned detect.Limit // from an answer or error; Tokens 0 = nothing
	under   int          // found.Limit.Tokens when it was learned
}

// Detect asks the servers of all models whose window is not configured how many
// tokens they really read. It returns when all have answered or their time
// (two seconds, see Config.Detect) is up; there is no error, because what is
// not found out has a default. Limits gives the outcome.
func (m *Models) Detect(ctx context.Context) {
	m.detect(ctx, func(*model) bool { return true })
}

// Run detects windows now and again when there is a reason: a server that did
// not answer, a model that was loaded since, an error. It ends with ctx.
func (m *Models) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	m.detect(ctx, (*model).unheard)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			m.detect(ctx, (*model).unheard)
		case <-m.look:
			m.detect(ctx, (*model).due)
		}
	}
}

func (m *Models) detect(ctx context.Context, want func(*model) bool) {
	var g errgroup.Group
	for _, mod := range m.models {
		if mod.Window == 0 && want(mod) {
			g.Go(func() error { mod.detect(ctx); return nil })
		}
	}
	_ = g.Wait() // none of them fails
}

// Limits says what is known of the windows of a role's models, in failover
// order. It asks nobody.
func (m *Models) Limits(role string) []detect.Found {
	var out []detect.Found
	for _, mod := range m.list(role) {
		out = append(out, mod.detection())
	}
	return out
}

// Limit is the window of the model called name, one of Names, as far as it is known. It asks nobody.
func (m *Models) Limit(name string) detect.Limit {
	return m.named(name).detection().Limit
}

// detect asks the model's server. Callers who come while it is asked wait and
// take what the first one heard.
func (m *model) detect(ctx context.Context) {
	came := m.cfg.Now()
	m.asking.Lock()
	defer m.asking.Unlock()
	m.mu.Lock()
	asked, before := m.windows.asked, m.limit()
	m.mu.Unlock()
	if asked.After(came) {
		return
	}
	found := detect.Server{BaseURL: m.BaseURL, Model: m.Model, Wait: m.cfg.Detect, Fetch: m.describe}.Ask(ctx)
	for i, step := range found.Steps {
		found.Steps[i] = m.clean(step)
	}
	if ctx.Err() != nil {
		return // half an inquiry
	}
	m.mu.Lock()
	m.take(found)
	after := m.limit()
	m.mu.Unlock()
	if after.Tokens != before.Tokens || after.Label != before.Label {
		m.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "context window", slog.String("model", m.Name),
			slog.Int("tokens", after.Tokens), slog.String("label", string(after.Label)), slog.String("source", after.Source))
	}
}

// maxSaid is how many bytes of a server's description are read. The longest
// known, a list of all models of a hosted service, is a quarter of it.
const maxSaid = 8 << 20

// describe asks the server about its models. answered tells that it did, if only to refuse.
func (m *model) describe(ctx context.Context, method, url string, body []byte) (raw []byte, answered bool, err error) {
	raw, err = m.fetch(ctx, method, url, body, maxSaid)
	var refused *serverError
	if errors.As(err, &refused) {
		return nil, true, fmt.Errorf("%d %s", refused.status, http.StatusText(refused.status))
	}
	return raw, err == nil, err
}

// take remembers what an inquiry found. The caller holds mu.
func (m *model) take(found detect.Found) {
	w := &m.windows
	now := m.cfg.Now()
	found.Limit.At = now
	// A local server forgets an idle model. It will load it as it did before:
	// a guess is no reason to make the window small and large again by turns.
	if old := w.found.Limit; old.Label == detect.Enforced && found.Limit.Label != detect.Enforced {
		steps := append(found.Steps, "not loaded now, or no answer: what was loaded before counts, "+old.String())
		found = w.found
		found.Steps = steps
	}
	if found.Limit.Tokens != w.under {
		w.learned = detect.Limit{}
	}
	w.asked, w.found = now, found
}

// limit is what counts now. The caller holds mu.
func (m *model) limit() detect.Limit {
	w := &m.windows
	l := w.found.Limit
	switch {
	case m.Window > 0:
		l = detect.Limit{Tokens: m.Window, Label: detect.Enforced, Source: "configured"}
	case l.Tokens == 0:
		l = detect.Limit{Tokens: detect.DefaultWindow, Label: detect.Default, Source: "the server does not say"}
		if w.asked.IsZero() {
			l.Source = "the server was not asked yet"
		}
	}
	got := w.learned
	if got.Tokens > 0 && m.cfg.Now().Sub(got.At) < keepLearned &&
		(got.Tokens < l.Tokens || got.Label == detect.Enforced && l.Label != detect.Enforced) {
		return got
	}
	return l
}

func (m *model) detection() detect.Found {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.windows.found
	d.Model, d.Limit, d.Steps = m.Name, m.limit(), slices.Clone(d.Steps)
	if m.Window > 0 {
		d.Steps = append(d.Steps, fmt.Sprintf("configured: %d tokens", m.Window))
	}
	if l := m.windows.learned; l.Tokens > 0 {
		d.Steps = append(d.Steps, l.String())
	}
	d.Steps = append(d.Steps, "in use: "+d.Limit.String())
	return d
}

// unheard reports whether the server did not answer when it was asked last.
func (m *model) unheard() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.windows.asked.IsZero() || !m.windows.found.Answered
}

// due reports whether what is known has become old.
func (m *model) due() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &m.windows
	fresh := freshHosted
	switch {
	case w.asked.IsZero():
		return true
	case !w.found.Answered || w.found.Server != "" && w.found.Limit.Label != detect.Enforced:
		fresh = freshGuess
	case w.found.Limit.Tokens == 0 || w.found.Limit.Label == detect.Enforced:
		fresh = freshLoaded
	}
	return m.cfg.Now().Sub(w.asked) >= fresh
}

// window is how many tokens the model reads and writes together, and how many
// of these are kept for its answer: what is configured, or at most a half of a
// window that nobody configured, because a request needs room too; of a small
// one a quarter.
func (m *model) window() (window, maxOutput int) {
	m.mu.Lock()
	window = m.limit().Tokens
	m.mu.Unlock()
	most := window / 2
	switch {
	case window == m.Window && m.MaxOutput > 0: // the configuration sees to it that it is smaller
		return window, m.MaxOutput
	case window != m.Window && window < detect.DefaultWindow:
		most = window / 4
	}
	if m.MaxOutput > 0 {
		return window, min(m.MaxOutput, most)
	}
	return window, min(defaultMaxOutput, most)
}

func (m *model) maxOutput() int {
	_, n := m.window()
	return n
}
