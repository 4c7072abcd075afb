// Package trace sends the steps of turns as traces of OpenTelemetry, without words of people, files or models.
package trace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Steps. The first three are operations of OpenTelemetry's conventions for generative AI.
const (
	Turn   = "invoke_agent"
	Chat   = "chat" // one request to a model
	Tool   = "execute_tool"
	Prompt = "prompt"
	Send   = "send" // from the outbox until the homeserver has the message
)

type object = map[string]any

// describe returns the kind of a step, which is 3 for a request, and its attributes. of is the model or the tool.
func describe(step, of string) (kind int, attributes []object) {
	switch step {
	case Turn:
		return 1, []object{text("gen_ai.operation.name", step), text("gen_ai.agent.name", of)}
	case Chat: // the provider is whose protocol it is
		return 3, []object{text("gen_ai.operation.name", step), text("gen_ai.provider.name", "openai"), text("gen_ai.request.model", of)}
	case Tool:
		return 1, []object{text("gen_ai.operation.name", step), text("gen_ai.tool.name", of)}
	}
	return 1, []object{}
}

// Tokens are attributes of a request; none if the server did not count.
func Tokens(input, cached, output int) []object {
	if input+output == 0 {
		return nil
	}
	return []object{num("gen_ai.usage.input_tokens", input), num("gen_ai.usage.cache_read.input_tokens", cached),
		num("gen_ai.usage.output_tokens", output)}
}

func text(key, s string) object  { return object{"key": key, "value": object{"stringValue": s}} }
func num(k string, n int) object { return object{"key": k, "value": object{"intValue": fmt.Sprint(n)}} }

// Span is a step that runs. A nil Span does nothing.
type Span struct {
	to        *exporter
	trace, id string // empty = turns begin here
	began     time.Time
	record    object // as OTLP has it in JSON
}

type inContext struct{} // the key of a context's *Span

// Start begins a step in ctx. Outside of turns it begins a turn, or does nothing. of is the model or the tool.
func Start(ctx context.Context, step, of string) (context.Context, *Span) {
	in, _ := ctx.Value(inContext{}).(*Span)
	if in == nil || in.trace == "" && step != Turn {
		return ctx, nil
	}
	kind, attributes := describe(step, of)
	s := &Span{to: in.to, began: time.Now(), id: fmt.Sprintf("%016x", rand.Uint64()),
		trace: cmp.Or(in.trace, fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()))}
	s.record = object{"traceId": s.trace, "spanId": s.id, "parentSpanId": in.id, "name": strings.TrimSpace(step + " " + of),
		"kind": kind, "startTimeUnixNano": fmt.Sprint(s.began.UnixNano()), "attributes": attributes}
	return context.WithValue(ctx, inContext{}, s), s
}

// End ends the step, and never waits. failure is a word about what went wrong; empty = nothing.
func (s *Span) End(failure string, more ...object) {
	if s == nil {
		return
	}
	if failure != "" {
		more, s.record["status"] = append(more, text("error.type", failure)), object{"code": 2}
	}
	s.record["attributes"] = append(s.record["attributes"].([]object), more...)
	s.record["endTimeUnixNano"] = fmt.Sprint(s.began.UnixNano() + int64(time.Since(s.began)))
	s.to.add(s.record)
}

// Failure returns a word about err, whose own text may have words of people. What was stopped did not fail.
func Failure(err error) string {
	if err == nil || errors.Is(err, context.Canceled) {
		return ""
	}
	return "_OTHER"
}

// exporter posts spans. What fails is lost: a trace is not worth a second try.
type exporter struct {
	url    string
	log    *slog.Logger
	mu     sync.Mutex // guards all below
	ended  []object   // spans to post
	lost   int        // spans since the last warning
	warned time.Time
}

// Begin returns a context whose turns are sent to endpoint, if there is one. end sends the rest, within two seconds.
func Begin(ctx context.Context, endpoint string, log *slog.Logger) (_ context.Context, end func()) {
	if endpoint == "" {
		return ctx, func() {}
	}
	x := &exporter{url: strings.TrimRight(endpoint, "/") + "/v1/traces", log: log}
	return context.WithValue(ctx, inContext{}, &Span{to: x}), func() { x.post(2 * time.Second) }
}

func (x *exporter) add(span object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.ended) == 2048 {
		x.lost++
		return
	}
	if x.ended = append(x.ended, span); len(x.ended) == 1 {
		time.AfterFunc(5*time.Second, func() { x.post(10 * time.Second) })
	}
}

func (x *exporter) post(within time.Duration) {
	x.mu.Lock()
	batch := x.ended
	x.ended = nil
	x.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	body, _ := json.Marshal(object{"resourceSpans": []object{{"resource": object{"attributes": []object{text("service.name", "reverie")}},
		"scopeSpans": []object{{"spans": batch}}}}}) // texts only
	resp, err := (&http.Client{Timeout: within}).Post(x.url, "application/json", bytes.NewReader(body))
	if err == nil {
		if resp.Body.Close(); resp.StatusCode/100 != 2 {
			err = errors.New(resp.Status)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		x.lost += len(batch)
	}
	if x.lost > 0 && time.Since(x.warned) > time.Minute {
		x.log.Warn("traces are lost: traces.endpoint is down or slow", "spans", x.lost, "err", err)
		x.lost, x.warned = 0, time.Now()
	}
}
