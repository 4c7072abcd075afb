package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"reverie/internal/test/expect"
)

// collector receives traces as OTLP in JSON.
type collector struct {
	mu     sync.Mutex
	posted []byte
	spans  []otlpSpan
	faults []string
}

type otlpSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	Start                               uint64 `json:"startTimeUnixNano,string"`
	End                                 uint64 `json:"endTimeUnixNano,string"`
	Status                              struct{ Code int }
	Attributes                          []struct {
		Key   string
		Value struct {
			StringValue *string
			IntValue    int64 `json:",string"`
		}
	}
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	var sent struct {
		ResourceSpans []struct {
			Resource   any
			ScopeSpans []struct{ Spans []otlpSpan }
		}
	}
	in := json.NewDecoder(strings.NewReader(string(body)))
	in.DisallowUnknownFields()
	if err := in.Decode(&sent); err != nil || r.Method+r.URL.Path+r.Header.Get("Content-Type") != "POST/v1/tracesapplication/json" {
		c.faults = append(c.faults, fmt.Sprint(r.Method, r.URL, r.Header, err))
	}
	c.posted = append(c.posted, body...)
	for _, resource := range sent.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// line describes a span: its parent's name, its own, and its attributes.
func (c *collector) line(s otlpSpan) string {
	parent := "nothing"
	if i := slices.IndexFunc(c.spans, func(o otlpSpan) bool { return o.SpanID == s.ParentSpanID }); i >= 0 {
		parent = c.spans[i].Name
	}
	line := fmt.Sprintf("%s > %s, kind %d, status %d", parent, s.Name, s.Kind, s.Status.Code)
	for _, a := range s.Attributes {
		if line += " " + a.Key + "="; a.Value.StringValue != nil {
			line += *a.Value.StringValue
		} else {
			line += fmt.Sprint(a.Value.IntValue)
		}
	}
	return line
}

// tellingTokens is a model that stores a memory and calls a tool that it invented, then answers. It counts tokens.
func tellingTokens(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	delta, tokens := `{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"append_memory","arguments":"{\"entry\":\"Ada likes marzipan\"}"}},
		{"index":1,"id":"call_2","function":{"name":"marzipan_finder","arguments":"{}"}}]}`, `{"prompt_tokens":700,"completion_tokens":9}`
	if strings.Contains(string(body), "call_1") {
		delta, tokens = `{"content":"Noted: marzipan."}`, `{"prompt_tokens":800,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":600}}`
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []string{`{"choices":[{"index":0,"delta":` + delta + `}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"choices":[],"usage":` + tokens + `}`, "[DONE]"} {
		fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(event, "\n", ""))
	}
}

// TestTraces: a turn is one trace with each of its steps, and no word of the message, the memory or the answer, no
// argument, and no name of a person or a room is in what is sent.
func TestTraces(t *testing.T) {
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()
	r := withModel(t, http.HandlerFunc(tellingTokens))
	r.configure("llm:", fmt.Sprintf("traces: {endpoint: %q}\nllm:", server.URL))
	stop := r.start()
	room := r.meetDirect()
	r.told(you, room, "My name is Ada and I like marzipan")
	r.settled()
	r.told(you, room, "!status") // no model is asked
	stop()

	if len(c.faults) > 0 || len(c.spans) == 0 {
		t.Fatalf("%d spans; refused: %q", len(c.spans), c.faults)
	}
	const turn, asked = "invoke_agent reverie", "gen_ai.operation.name=chat gen_ai.provider.name=openai gen_ai.request.model=m gen_ai.usage."
	want := []string{
		turn + " > chat m, kind 3, status 0 " + asked + "input_tokens=700 gen_ai.usage.cache_read.input_tokens=0 gen_ai.usage.output_tokens=9",
		turn + " > chat m, kind 3, status 0 " + asked + "input_tokens=800 gen_ai.usage.cache_read.input_tokens=600 gen_ai.usage.output_tokens=4",
		turn + " > execute_tool append_memory, kind 1, status 0 gen_ai.operation.name=execute_tool gen_ai.tool.name=append_memory",
		turn + " > execute_tool, kind 1, status 2 gen_ai.operation.name=execute_tool gen_ai.tool.name= error.type=_OTHER",
		"nothing > " + turn + ", kind 1, status 0 gen_ai.operation.name=invoke_agent gen_ai.agent.name=reverie",
		turn + " > prompt, kind 1, status 0", turn + " > prompt, kind 1, status 0", turn + " > send, kind 1, status 0",
	}
	var got []string
	for _, s := range c.spans {
		got = append(got, c.line(s))
		ids := s.TraceID + " " + s.SpanID
		if s.TraceID != c.spans[0].TraceID || !regexp.MustCompile(`^[0-9a-f]{32} [0-9a-f]{16}$`).MatchString(ids) || s.Start == 0 || s.End < s.Start {
			t.Errorf("%+v", s)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	expect.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"))
	for _, word := range []string{"arzipan", "Ada", "likes", "Noted", "you", "matrix.test", strings.Trim(room, "!"), "call_1", r.dir} {
		if strings.Contains(string(c.posted), word) {
			t.Errorf("%q is in %s", word, c.posted)
		}
	}
}

// TestTracesAreLost: an endpoint that refuses or never answers fails no turn, and the log says so.
func TestTracesAreLost(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	for _, endpoint := range []string{"http://127.0.0.1:1", silent.URL, refusing.URL} {
		r := withModel(t, http.HandlerFunc(tellingTokens))
		r.configure("llm:", fmt.Sprintf("traces: {endpoint: %q}\nllm:", endpoint))
		stop := r.start()
		r.told(you, r.meetDirect(), "My name is Ada")
		stop()
		if !r.wrote("traces are lost") {
			t.Errorf("%s: not in the log", endpoint)
		}
	}
}
