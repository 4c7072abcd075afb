// Package metrics counts what the program does, and serves the figures to Prometheus.
//
// No figure has a room, a person, a model or words of anybody in its labels, so there are at most
// 60 time series, whatever happens.
package metrics

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"reverie/internal/chat"
	"reverie/internal/llm"
)

// Counters count from the start of the program on. They are safe for concurrent use.
type Counters struct {
	registry                                 *prometheus.Registry
	received, requests, toolFailures, dreams prometheus.Counter
	replies, tokens, tools                   *prometheus.CounterVec
	latency                                  prometheus.Histogram
}

// classes groups the tools, by name.
var classes = map[string]string{
	"append_memory": "memory", "search_memory": "memory", "task": "task", "goal": "task", "add_skill": "skill",
	"read_file": "file", "list_files": "file", "find_in_files": "file", "write_file": "file", "edit_file": "file",
	"delete_file": "file", "send_file": "file", "web_search": "web", "web_fetch": "web", "run_code": "code", "shell": "code",
	"shell_status": "code", "find_tool": "program", "call_tool": "program",
	"stay_silent": "session", "ask_person": "session", "spawn_sub_session": "session", "set_mode": "session",
	"set_model": "session", "ask_advisors": "session",
}

// New returns counters that are all zero. version is the program's.
func New(version string) *Counters {
	registry := prometheus.NewRegistry()
	register := promauto.With(registry)
	count := func(name, help string) prometheus.Counter {
		return register.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	countBy := func(name, help, label string, values ...string) *prometheus.CounterVec {
		m := register.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		for _, v := range values { // from the start, so that a rate is right
			m.WithLabelValues(v)
		}
		return m
	}
	register.NewGauge(prometheus.GaugeOpts{Name: "reverie_build_info", Help: "The release that runs.",
		ConstLabels: prometheus.Labels{"version": version}}).Set(1)
	return &Counters{
		registry: registry,
		received: count("reverie_messages_received_total", "Messages of people."),
		replies: countBy("reverie_replies_total", "Replies to messages; one may answer several. failed: a sentence about why there "+
			"is no answer, such as a failure, a stop or an unreadable file.", "result", "answered", "command", "failed"),
		requests: count("reverie_model_answers_total", "Answers of language models, also those in the background."),
		tokens: countBy("reverie_model_tokens_total", "Tokens of requests and answers. cached is part of prompt; "+
			"estimated is of servers that do not count.", "kind", "prompt", "cached", "output", "estimated"),
		tools: countBy("reverie_tool_calls_total", "Calls of tools.", "class",
			append(slices.Compact(slices.Sorted(maps.Values(classes))), "other")...),
		toolFailures: count("reverie_tool_failures_total", "Calls of tools that did not do their work."),
		dreams:       count("reverie_dreams_total", "Times that the memory was tidied up."),
		latency: register.NewHistogram(prometheus.HistogramOpts{Name: "reverie_answer_seconds",
			Help: "From a message to its whole answer.", Buckets: []float64{1, 2, 5, 10, 20, 60, 120, 300}}),
	}
}

// ToolRan counts a call of a tool.
func (c *Counters) ToolRan(name string, fails bool) {
	c.tools.WithLabelValues(cmp.Or(classes[name], "other")).Inc() // other: a model invented it
	if fails {
		c.toolFailures.Inc()
	}
}

// Dreamed counts one time that the memory was tidied up.
func (c *Counters) Dreamed() { c.dreams.Inc() }

// Meter returns m, which also counts here.
func (c *Counters) Meter(m llm.Meter) llm.Meter { return meter{m, c} }

type meter struct {
	llm.Meter
	c *Counters
}

func (m meter) Count(model, person string, u llm.Usage, guessed bool) {
	m.Meter.Count(model, person, u, guessed)
	m.c.requests.Inc()
	if guessed {
		m.c.tokens.WithLabelValues("estimated").Add(float64(u.Prompt + u.Output))
		return
	}
	for kind, n := range map[string]int{"prompt": u.Prompt, "cached": u.Cached, "output": u.Output} {
		m.c.tokens.WithLabelValues(kind).Add(float64(max(n, 0)))
	}
}

// Watch returns t, which counts the replies that it sends.
func (c *Counters) Watch(t chat.Transport) *Transport {
	return &Transport{Transport: t, c: c, waiting: map[string]arrival{}}
}

// Transport is a chat.Transport whose messages are counted.
type Transport struct {
	chat.Transport
	c *Counters

	mu      sync.Mutex
	waiting map[string]arrival // messages without a reply, by id
}

type arrival struct {
	at      time.Time
	command bool
}

// Received counts the message of a person with that id, before its session has it. isCommand says that no
// model is asked.
func (t *Transport) Received(id string, isCommand bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, again := t.waiting[id]; !again {
		t.waiting[id] = arrival{time.Now(), isCommand}
		t.c.received.Inc()
	}
}

// Send implements chat.Transport.
func (t *Transport) Send(ctx context.Context, room string, m chat.Outgoing) error {
	return t.sent(m, t.Transport.Send(ctx, room, m))
}

// SendFinal implements chat.Transport.
func (t *Transport) SendFinal(ctx context.Context, room string, m chat.Outgoing, done []string,
	also func(context.Context, *sql.Tx) error,
) error {
	err := t.sent(m, t.Transport.SendFinal(ctx, room, m, done, also))
	if err == nil {
		t.forget(done...)
	}
	return err
}

// sent counts m if it is the reply to a message and was stored without an error.
func (t *Transport) sent(m chat.Outgoing, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, waits := t.waiting[m.ReplyTo]
	if err != nil || m.Draft || !waits {
		return err
	}
	delete(t.waiting, m.ReplyTo)
	result := "answered"
	switch {
	case in.command:
		result = "command"
	case m.Notice:
		result = "failed"
	default:
		t.c.latency.Observe(time.Since(in.at).Seconds())
	}
	t.c.replies.WithLabelValues(result).Inc()
	return nil
}

// Ack implements chat.Transport.
func (t *Transport) Ack(ctx context.Context, id string) error {
	err := t.Transport.Ack(ctx, id)
	if err == nil {
		t.forget(id)
	}
	return err
}

// forget ends the wait of messages that are answered together with another, or not at all.
func (t *Transport) forget(ids ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		delete(t.waiting, id)
	}
}
