package llm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"reverie/internal/trace"
)

// model is one configured model and what was learned of it.
type model struct {
	ModelConfig
	cfg     Config // defaults filled in
	client  *http.Client
	secrets []string // removed from every text

	detecting sync.Mutex      // held while the server is asked for its window
	wakeRun   chan<- struct{} // wakes Models.Run; nil = it does not run

	mu      sync.Mutex
	quirks  quirk
	windows windows
}

// minSecret is the shortest key that is removed from texts. Servers without keys get words like
// "x", which occur everywhere.
const minSecret = 4

func newModel(c ModelConfig, cfg Config, client *http.Client) *model {
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	c.BaseURL, c.APIKey = strings.TrimRight(c.BaseURL, "/"), strings.TrimSpace(c.APIKey) // a key from a variable may end in a newline
	m := &model{ModelConfig: c, cfg: cfg, client: client}
	if len(c.APIKey) >= minSecret {
		m.secrets = append(m.secrets, c.APIKey)
	}
	if p, _ := m.url().User.Password(); len(p) >= minSecret {
		m.secrets = append(m.secrets, p, url.QueryEscape(p), url.PathEscape(p))
	}
	return m
}

func (m *model) knownQuirks() quirk {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.quirks
}

// learnQuirk records a quirk and logs it once.
func (m *model) learnQuirk(q quirk) {
	m.mu.Lock()
	known := m.quirks&q != 0
	m.quirks |= q
	m.mu.Unlock()
	if !known {
		m.cfg.Log.Warn("model "+quirkNames[q], "model", m.Name)
	}
}

// complete makes the request with retries, and logs the outcome.
func (m *model) complete(ctx context.Context, req Request, stream func(string)) (Reply, *Error) {
	if m.cfg.Meter != nil {
		if err := m.cfg.Meter.Exhausted(ctx, m.Name, req.Person); err != nil {
			return Reply{}, err
		}
	}
	begin := time.Now()
	if hasPictures(req) && !m.acceptsPictures(ctx) {
		req.Messages = describePictures(req.Messages)
	}
	var without, last quirk // parts left out on suspicion
	for try := 1; ; try++ {
		used := m.knownQuirks() | without
		asking, span := trace.Start(ctx, trace.Chat, m.Model)
		reply, f := m.attempt(asking, req, used, stream)
		if f == nil {
			span.End("", trace.Tokens(reply.Usage.Prompt, reply.Usage.Cached, reply.Usage.Output)...)
			if last != 0 {
				m.learnQuirk(last)
			}
			m.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "model answered", slog.String("model", m.Name),
				slog.Int("prompt_tokens", reply.Usage.Prompt), slog.Int("cached_tokens", reply.Usage.Cached),
				slog.Int("output_tokens", reply.Usage.Output), slog.String("finish", reply.Finish),
				slog.Duration("first_token", reply.FirstToken.Round(time.Millisecond)),
				slog.Duration("took", time.Since(begin).Round(time.Millisecond)), slog.Int("tries", try))
			m.count(req, reply)
			m.learnFromReply(ctx, req, reply)
			return reply, nil
		}
		span.End(string(f.kind))
		if ctx.Err() != nil {
			return Reply{}, &Error{Kind: Failed, Model: m.Name, Err: ctx.Err()}
		}
		if f.kind == TooLarge {
			m.learnFromRefusal(ctx, req, f)
		}
		parts := m.optionalParts(req, used)
		if f.quirk&used&alternating != 0 { // it alternates already: its template counts tool results as out of turn
			f.quirk = plainTools
		}
		if q := f.quirk & (parts | ^dispensable); q != 0 && used&q == 0 { // repeat without that part; not a failed try
			m.learnQuirk(q)
			try--
			continue
		}
		if (f.unexplained || f.quirk != 0) && parts != 0 { // leave one part out: if the request then succeeds, that was the cause
			last = parts & -parts
			without |= last
			try--
			continue
		}
		if !m.retry(ctx, begin, try, f) {
			m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "model failed", slog.String("model", m.Name),
				slog.String("kind", string(f.kind)), slog.String("error", f.text),
				slog.Duration("took", time.Since(begin).Round(time.Millisecond)), slog.Int("tries", try))
			return Reply{}, m.failed(f)
		}
	}
}

// count tells the meter what an answer cost: the server's own numbers, else an estimate.
func (m *model) count(req Request, reply Reply) {
	if m.cfg.Meter == nil {
		return
	}
	if reply.Usage.Prompt+reply.Usage.Output > 0 {
		m.cfg.Meter.Count(m.Name, req.Person, reply.Usage, false)
		return
	}
	said := Message{Role: Assistant, Content: reply.Text, ToolCalls: reply.ToolCalls}
	req.Messages = append(slices.Clip(req.Messages), said)
	m.cfg.Meter.Count(m.Name, req.Person, Usage{Prompt: estimate(req)}, true)
}

// retry waits before the next try and reports whether there is one. An empty or garbled answer is
// requested only once more.
func (m *model) retry(ctx context.Context, begin time.Time, try int, f *failure) bool {
	attempts := m.cfg.Retry.Attempts
	if f.kind == Empty || f.kind == Garbled {
		attempts = min(2, attempts)
	}
	loading := f.loading && time.Since(begin) < m.cfg.FirstToken
	if !loading && (!f.retryable || try >= attempts) {
		return false
	}
	return m.cfg.Retry.Sleep(ctx, retryDelay(try, f.retryAfter)) == nil
}

// retryDelay returns the delay after a failed try: what the server asked for, or an exponential backoff
// with a jitter of a quarter.
func retryDelay(try int, after time.Duration) time.Duration {
	if after > 0 {
		return min(after, 30*time.Second)
	}
	d := 8 * time.Second
	if try <= 2 {
		d = [...]time.Duration{500 * time.Millisecond, 2 * time.Second}[try-1]
	}
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2))
}

// Causes of a request's cancellation.
var (
	errFirstToken = errors.New("the answer did not begin in time")
	errIdle       = errors.New("the answer stopped in the middle")
	errTimeout    = errors.New("the answer took longer than the model's timeout")
	errBroken     = errors.New("the connection broke before the answer was complete")
)

const usageWait = 5 * time.Second // for the token counts that follow the answer

// attempt makes one HTTP request. A nil failure means success.
func (m *model) attempt(ctx context.Context, req Request, q quirk, stream func(string)) (Reply, *failure) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.Timeout, errTimeout)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	w := &watch{limit: m.cfg.FirstToken, why: errFirstToken, giveUp: giveUp}
	w.timer = time.AfterFunc(w.limit, w.expired)
	defer w.timer.Stop()

	body, err := encodeWithMarks(m.buildRequest(req, q), m.cacheMarks(req, m.messages(req, q), q))
	if err != nil {
		return Reply{}, &failure{kind: Failed, text: err.Error()}
	}
	asked := time.Now()
	in, err := m.send(ctx, http.MethodPost, m.BaseURL+"/chat/completions", asJSON, body)
	if err != nil {
		return Reply{}, m.judge(ctx, err)
	}
	defer in.Close()
	w.alive()
	a := answer{stream: stream, watch: w, idle: m.cfg.Idle, asked: asked, reader: callReader(req), withhold: q&thinksFirst != 0}
	if err := a.read(&eventStream{in: bufio.NewReader(io.LimitReader(in, maxAnswer+1)), alive: w.alive}); err != nil {
		return Reply{}, m.judge(ctx, err)
	}
	reply, found := a.reply()
	if found.unopened {
		m.learnQuirk(thinksFirst)
	}
	reply.Model = m.Name
	if reply.Text == "" && len(reply.ToolCalls) == 0 {
		return Reply{}, &failure{kind: Empty, text: whyEmpty(reply, found.thought), retryable: reply.Finish != "length"}
	}
	return reply, nil
}

// send sends a request to the model's server and returns the body. The caller closes the body. A
// refusal is a *serverError. It follows no redirect, which would pass the key on.
func (m *model) send(ctx context.Context, method, url, contentType string, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if m.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+m.APIKey)
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := m.client.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		return nil, err
	}
	return nil, parseRefusal(resp.StatusCode, resp.Header, raw)
}

// fetch sends a request and reads its JSON answer of at most most bytes.
func (m *model) fetch(ctx context.Context, method, url string, body []byte, most int) ([]byte, error) {
	in, err := m.send(ctx, method, url, asJSON, body)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err == nil && len(raw) > most {
		err = garbled("the answer is larger than %d MiB", most>>20)
	}
	return raw, err
}

const asJSON = "application/json"

// withoutURL strips the method and address from a request's error: the text repeats them.
func withoutURL(err error) error {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		return inURL.Err
	}
	return err
}

// watch cancels a request whose server stays silent too long.
type watch struct {
	timer  *time.Timer
	giveUp context.CancelCauseFunc

	mu    sync.Mutex
	limit time.Duration
	why   error
}

func (w *watch) alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Reset(w.limit)
}

// setLimit sets the silence that is allowed from now on.
func (w *watch) setLimit(limit time.Duration, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit, w.why = limit, why
	w.timer.Reset(limit)
}

func (w *watch) expired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.giveUp(w.why)
}
