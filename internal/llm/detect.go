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
	"reverie/internal/pace"
)

// How long a detected window is valid. A server is asked again only after an answer, so an unused
// server stays undisturbed.
const (
	maxGuessAge   = time.Minute      // the model was not loaded: its first answer changes that
	maxLoadedAge  = 10 * time.Minute // it may be reloaded with another size, or the server replaced
	maxHostedAge  = 6 * time.Hour
	maxLearnedAge = 6 * time.Hour // after that, one request may fail again

	detectInterval = time.Minute // for servers that never answered
)

// windows is what is known of a model's window. The model's mu guards it.
type windows struct {
	asked       time.Time    // time of the last detection; zero = never
	found       detect.Found // its result; Limit.Tokens 0 = unknown
	learned     detect.Limit // from an answer or error; Tokens 0 = nothing
	foundBefore int          // found.Limit.Tokens when learned was set
}

// Detect asks the servers for the windows of all models that have none configured. It returns when
// all have answered or after two seconds each (Config.Detect). It has no error: an unknown window
// has a default. Limits returns the results.
func (m *Models) Detect(ctx context.Context) {
	m.detect(ctx, func(*model) bool { return true })
}

// Run repeats the detection when there is a reason: a server that did not answer, a model loaded
// since, an error. It ends with ctx.
func (m *Models) Run(ctx context.Context) error {
	tick := time.NewTicker(detectInterval)
	defer tick.Stop()
	m.detect(ctx, (*model).unanswered)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			m.detect(ctx, (*model).unanswered)
		case <-m.wakeRun:
			m.detect(ctx, (*model).detectionExpired)
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
	_ = g.Wait() // it never returns an error
}

// Limits returns what is known of the windows of a role's models, in failover order. It sends no
// request.
func (m *Models) Limits(role string) []detect.Found {
	var out []detect.Found
	for _, mod := range m.failoverList(role) {
		out = append(out, mod.detection())
	}
	return out
}

// Limit returns what is known of the window of the model name, one of Names. It sends no request.
func (m *Models) Limit(name string) detect.Limit {
	return m.modelNamed(name).detection().Limit
}

// detect asks the model's server. Concurrent callers wait and share the result.
func (m *model) detect(ctx context.Context) {
	came := m.cfg.Now()
	m.detecting.Lock()
	defer m.detecting.Unlock()
	m.mu.Lock()
	asked, before := m.windows.asked, m.limit()
	m.mu.Unlock()
	if asked.After(came) {
		return
	}
	found := detect.Server{BaseURL: m.BaseURL, Model: m.Model, Wait: m.cfg.Detect, Fetch: m.describe}.Ask(ctx)
	for i, step := range found.Steps {
		found.Steps[i] = m.redactSecrets(step)
	}
	if ctx.Err() != nil {
		return // incomplete
	}
	m.mu.Lock()
	m.storeDetection(found)
	after := m.limit()
	m.mu.Unlock()
	if after.Tokens != before.Tokens || after.Label != before.Label {
		m.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "context window", slog.String("model", m.Name),
			slog.Int("tokens", after.Tokens), slog.String("label", string(after.Label)), slog.String("source", after.Source))
	}
}

// maxDescription is the largest description that is read, in bytes. The longest known, a hosted service's
// list of models, is a quarter of it.
const maxDescription = 8 << 20

// describe fetches a description of the server's models. answered is also true of a refusal.
func (m *model) describe(ctx context.Context, method, url string, body []byte) (raw []byte, answered bool, err error) {
	raw, err = m.fetch(ctx, method, url, body, maxDescription)
	var refused *serverError
	if errors.As(err, &refused) {
		return nil, true, fmt.Errorf("%d %s", refused.status, http.StatusText(refused.status))
	}
	return raw, err == nil, err
}

// storeDetection stores the result of a detection. The caller holds mu.
func (m *model) storeDetection(found detect.Found) {
	w := &m.windows
	now := m.cfg.Now()
	found.Limit.At = now
	// A local server unloads an idle model and will load it as before. A guess must not make the
	// window smaller in between.
	if old := w.found.Limit; old.Label == detect.Enforced && found.Limit.Label != detect.Enforced {
		steps := append(found.Steps, "not loaded now, or no answer: what was loaded before counts, "+old.String())
		found = w.found
		found.Steps = steps
	}
	if found.Limit.Tokens != w.foundBefore {
		w.learned = detect.Limit{}
	}
	w.asked, w.found = now, found
}

// limit returns the limit in force. The caller holds mu.
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
	if got.Tokens > 0 && m.cfg.Now().Sub(got.At) < maxLearnedAge &&
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

// unanswered reports whether the server did not answer the last detection.
func (m *model) unanswered() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.windows.asked.IsZero() || !m.windows.found.Answered
}

// detectionExpired reports whether the detection is out of date.
func (m *model) detectionExpired() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &m.windows
	fresh := maxHostedAge
	switch {
	case w.asked.IsZero():
		return true
	case !w.found.Answered || w.found.Server != "" && w.found.Limit.Label != detect.Enforced:
		fresh = maxGuessAge
	case w.found.Limit.Tokens == 0 || w.found.Limit.Label == detect.Enforced:
		fresh = maxLoadedAge
	}
	return m.cfg.Now().Sub(w.asked) >= fresh
}

// window returns the model's window and the part reserved for the answer, in tokens. Of a window
// that is not configured, the answer gets at most a half, of a small one a quarter: the request
// needs room, too.
func (m *model) window() (window, maxOutput int) {
	m.mu.Lock()
	window = m.limit().Tokens
	m.mu.Unlock()
	most := window / 2
	switch {
	case window == m.Window && m.MaxOutput > 0: // the configuration guarantees that it is smaller
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

// minLearned is the smallest window that is learned. It keeps a wrong guess from leaving no room
// at all, and small requests from being counted as too large.
const minLearned = 2048 // tokens

// learnFromRefusal learns a window from a request that was too large: the number that the server named, or
// else something below the size of the request.
func (m *model) learnFromRefusal(ctx context.Context, req Request, f *failure) {
	if f.limit == 0 && hasPictures(req) { // how the server counts pictures is unknown
		return
	}
	m.mu.Lock()
	now := m.limit()
	m.mu.Unlock()
	l := detect.Limit{Tokens: f.limit, Label: detect.Enforced, Source: "learned from an error"}
	if l.Tokens == 0 {
		sent := estimate(req)
		l = detect.Limit{Tokens: max(minLearned, min(now.Tokens, sent+m.maxOutput())/4*3), Label: detect.Estimated,
			Source: "learned from an error that named no number"}
		if sent < minLearned/2 || l.Tokens >= now.Tokens {
			return
		}
	}
	m.learnLimit(ctx, l)
}

// learnFromReply learns from a good answer whether the model was loaded since. It also learns
// whether the server read the whole request. Ollama does not refuse a request that is too large: it
// drops the beginning silently.
func (m *model) learnFromReply(ctx context.Context, req Request, reply Reply) {
	m.mu.Lock()
	truncates := m.windows.found.Server == detect.Ollama
	m.mu.Unlock()
	if sent, read := estimate(req), reply.Usage.Prompt; truncates && !hasPictures(req) && read >= minLearned/2 && 2*sent > 3*read {
		n := max(minLearned, (read+1023)/1024*1024)
		m.learnLimit(ctx, detect.Limit{Tokens: n, Label: detect.Estimated,
			Source: fmt.Sprintf("learned: the server read %d tokens of about %d", read, sent)})
	}
	if m.Window == 0 && m.detectionExpired() {
		pace.Wake(m.wakeRun)
	}
}

func (m *model) learnLimit(ctx context.Context, l detect.Limit) {
	m.mu.Lock()
	l.At = m.cfg.Now()
	before := m.limit()
	w := &m.windows
	w.learned, w.foundBefore = l, w.found.Limit.Tokens
	after := m.limit()
	m.mu.Unlock()
	if after.Tokens != before.Tokens {
		m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "context window differs from the assumed one", slog.String("model", m.Name),
			slog.Int("tokens", after.Tokens), slog.Int("before", before.Tokens), slog.String("source", after.Source))
	}
}

// estimate returns the approximate size of a request in tokens.
func estimate(req Request) int {
	n := 0
	for _, msg := range req.Messages {
		n += EstimateTokens(msg.Content) + 4
		for _, c := range msg.ToolCalls {
			n += EstimateTokens(c.Name) + EstimateTokens(c.Arguments)
		}
	}
	for _, t := range req.Tools {
		n += EstimateTokens(t.Name) + EstimateTokens(t.Description) + EstimateTokens(string(t.Parameters))
	}
	return n
}
