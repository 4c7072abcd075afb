package llm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// model is one configured model and what was learned about it.
type model struct {
	ModelConfig
	cfg     Config // defaults filled in
	client  *http.Client
	secrets []string // never to be shown

	asking sync.Mutex      // held while the server is asked for its window
	look   chan<- struct{} // wakes Models.Run; nil = nobody runs

	mu      sync.Mutex
	quirks  quirk
	windows windows
}

// minSecret is the length from which a key is taken out of texts: servers that
// want none are given words like "x", which stand in every sentence.
const minSecret = 4

func newModel(c ModelConfig, cfg Config, client *http.Client) *model {
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	c.BaseURL, c.APIKey = strings.TrimRight(c.BaseURL, "/"), strings.TrimSpace(c.APIKey) // a key from a variable may end in a line end
	m := &model{ModelConfig: c, cfg: cfg, client: client}
	if len(c.APIKey) >= minSecret {
		m.secrets = append(m.secrets, c.APIKey)
	}
	if p, _ := m.url().User.Password(); len(p) >= minSecret {
		m.secrets = append(m.secrets, p, url.QueryEscape(p), url.PathEscape(p))
	}
	return m
}

func (m *model) known() quirk {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.quirks
}

// learn remembers a quirk, and tells the operator once.
func (m *model) learn(q quirk) {
	m.mu.Lock()
	known := m.quirks&q != 0
	m.quirks |= q
	m.mu.Unlock()
	if !known {
		m.cfg.Log.Warn("model "+quirkNames[q], "model", m.Name)
	}
}

// ask makes the request, again where that may help, and logs how it went.
func (m *model) ask(ctx context.Context, req Request, stream func(string)) (Reply, *Error) {
	begin := time.Now()
	if pictured(req) && !m.sees(ctx) {
		req.Messages = told(req.Messages)
	}
	var without, last quirk // left out on suspicion
	for try := 1; ; try++ {
		used := m.known() | without
		reply, f := m.once(ctx, req, used, stream)
		if f == nil {
			if last != 0 {
				m.learn(last)
			}
			m.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "model answered", slog.String("model", m.Name),
				slog.Int("prompt_tokens", reply.Usage.Prompt), slog.Int("cached_tokens", reply.Usage.Cached),
				slog.Int("output_tokens", reply.Usage.Output), slog.String("finish", reply.Finish),
				slog.Duration("first_token", reply.First.Round(time.Millisecond)),
				slog.Duration("took", time.Since(begin).Round(time.Millisecond)), slog.Int("tries", try))
			m.replied(ctx, req, reply)
			return reply, nil
		}
		if ctx.Err() != nil {
			return Reply{}, &Error{Kind: Failed, Model: m.Name, Err: ctx.Err()}
		}
		if f.kind == TooLarge {
			m.refused(ctx, req, f)
		}
		parts := m.optional(req, used)
		if f.quirk&used&alternating != 0 { // they do: its template takes results of tools for words out of turn
			f.quirk = plainTools
		}
		if q := f.quirk & (parts | ^dispensable); q != 0 && used&q == 0 { // the same without it; not a failed try
			m.learn(q)
			try--
			continue
		}
		if (f.vague || f.quirk != 0) && parts != 0 { // it may be one of these; if the request works without, it was
			last = parts & -parts
			without |= last
			try--
			continue
		}
		if !m.retry(ctx, begin, try, f) {
			m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "model failed", slog.String("model", m.Name),
				slog.String("kind", string(f.kind)), slog.String("error", f.text),
				slog.Duration("took", time.Since(begin).Round(time.Millisecond)), slog.Int("tries", try))
			return Reply{}, &Error{Kind: f.kind, Model: m.Name, Err: errors.New(f.text)}
		}
	}
}

// retry waits for the next try to make a request, if that may help. An answer that was empty or garbled
// is asked for just once more: it will hardly get better.
func (m *model) retry(ctx context.Context, begin time.Time, try int, f *failure) bool {
	attempts := m.cfg.Retry.Attempts
	if f.kind == Empty || f.kind == Garbled {
		attempts = min(2, attempts)
	}
	loading := f.loading && time.Since(begin) < m.cfg.FirstToken
	if !loading && (!f.again || try >= attempts) {
		return false
	}
	return m.cfg.Retry.Sleep(ctx, wait(try, f.after)) == nil
}

// wait is how long to wait after a failed try: what the server asked for, or
// longer each time, within a quarter up or down so that clients do not march in
// step.
func wait(try int, after time.Duration) time.Duration {
	if after > 0 {
		return min(after, 30*time.Second)
	}
	d := 8 * time.Second
	if try <= 2 {
		d = [...]time.Duration{500 * time.Millisecond, 2 * time.Second}[try-1]
	}
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2))
}

// Why a request was given up before its answer was complete.
var (
	errFirstToken = errors.New("the answer did not begin in time")
	errIdle       = errors.New("the answer stopped in the middle")
	errWhole      = errors.New("the answer took longer than the model's timeout")
	errBroken     = errors.New("the connection broke before the answer was complete")
)

const afterFinish = 5 * time.Second // patience for the token counts after the answer

// once makes one HTTP request. A nil failure means a good answer.
func (m *model) once(ctx context.Context, req Request, q quirk, stream func(string)) (Reply, *failure) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.Timeout, errWhole)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	w := &watch{limit: m.cfg.FirstToken, why: errFirstToken, giveUp: giveUp}
	w.timer = time.AfterFunc(w.limit, w.expired)
	defer w.timer.Stop()

	body, err := marked(m.build(req, q), m.marks(req, m.messages(req, q), q))
	if err != nil {
		return Reply{}, &failure{kind: Failed, text: err.Error()}
	}
	asked := time.Now()
	in, err := m.open(ctx, http.MethodPost, m.BaseURL+"/chat/completions", asJSON, body)
	if err != nil {
		return Reply{}, m.judge(ctx, err)
	}
	defer in.Close()
	w.alive()
	a := answer{stream: stream, watch: w, idle: m.cfg.Idle, asked: asked, reader: readerOf(req), hold: q&thinksFirst != 0}
	if err := a.read(newEvents(in, w.alive)); err != nil {
		return Reply{}, m.judge(ctx, err)
	}
	reply, found := a.reply()
	if found.lone {
		m.learn(thinksFirst)
	}
	reply.Model = m.Name
	if reply.Text == "" && len(reply.ToolCalls) == 0 {
		return Reply{}, &failure{kind: Empty, text: whyEmpty(reply, found.thought), again: reply.Finish != "length"}
	}
	return reply, nil
}

// open makes a request to the model's server and returns the body of its answer, which the caller
// closes. A refusal is a *serverError. It follows no redirect, as the key would go along.
func (m *model) open(ctx context.Context, method, url, contentType string, body []byte) (io.ReadCloser, error) {
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
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxRefuse))
	if err != nil {
		return nil, err
	}
	return nil, refusal(resp.StatusCode, resp.Header, raw)
}

// fetch is open for JSON; it reads the answer, of at most so many bytes.
func (m *model) fetch(ctx context.Context, method, url string, body []byte, most int) ([]byte, error) {
	in, err := m.open(ctx, method, url, asJSON, body)
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

// withoutURL is an error of a request without its method and address, which the text repeats.
func withoutURL(err error) error {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		return inURL.Err
	}
	return err
}

// watch gives a request up when its server stays silent too long.
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

// expect changes how long the server may stay silent from now on.
func (w *watch) expect(limit time.Duration, why error) {
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
