package matrixtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"time"
)

// Request is the request that a Match checks.
type Request struct {
	Endpoint     string // name of the route, such as "send"
	Method, Path string
	User, Device string // sender; empty when not logged in
	Room         string // from the path
	Body         []byte
}

// Match selects requests. It is called with the server's lock held, one request at a time. So it may
// count, but must not call the server.
type Match func(*Request) bool

// On matches requests to any of the endpoints.
func On(endpoints ...string) Match {
	return func(r *Request) bool { return slices.Contains(endpoints, r.Endpoint) }
}

// By limits a match to requests of a user.
func (m Match) By(user string) Match {
	return func(r *Request) bool { return r.User == user && m(r) }
}

// In limits a match to requests about a room.
func (m Match) In(room string) Match {
	return func(r *Request) bool { return r.Room == room && m(r) }
}

// Saying limits a match to requests whose body contains text.
func (m Match) Saying(text string) Match {
	return func(r *Request) bool { return m(r) && bytes.Contains(r.Body, []byte(text)) }
}

// Times limits a match to its first n requests.
func (m Match) Times(n int) Match {
	return func(r *Request) bool {
		if n <= 0 || !m(r) {
			return false
		}
		n--
		return true
	}
}

// After skips the first n requests of a match.
func (m Match) After(n int) Match {
	return func(r *Request) bool {
		if !m(r) {
			return false
		}
		n--
		return n < 0
	}
}

// Fault changes how a request is handled. It may call next, which handles the request and writes the
// response. With a recorder as w the client does not see that response.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Hook is an active fault.
type Hook struct {
	s     *Server
	match Match
	fault Fault
	hits  int
}

// Fault activates a fault for the requests that match. The newest matching fault sees a request
// first.
func (s *Server) Fault(match Match, fault Fault) *Hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &Hook{s: s, match: match, fault: fault}
	s.faults = append(s.faults, h)
	return h
}

// Remove deactivates the fault. Requests that it is handling continue.
func (h *Hook) Remove() {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	h.s.faults = slices.DeleteFunc(h.s.faults, func(o *Hook) bool { return o == h })
}

// Hits returns the number of requests that the fault was applied to.
func (h *Hook) Hits() int {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	return h.hits
}

// matchingHooks returns the hooks for a request. The lock is held.
func (s *Server) matchingHooks(r *Request) []*Hook {
	var hooks []*Hook
	for _, h := range s.faults {
		if h.match(r) {
			h.hits++
			hooks = append(hooks, h)
		}
	}
	return hooks
}

func (s *Server) withFaults(hooks []*Hook, next http.Handler) http.Handler {
	for _, h := range hooks {
		inner := next
		next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.fault(w, r, inner) })
	}
	return next
}

// Drop cuts the connection before the request takes effect.
func Drop() Fault {
	return func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }
}

// DropAnswer cuts the connection after the request took effect.
func DropAnswer() Fault { return AfterEffect(Drop()) }

// AfterEffect lets the request take effect, hides the response, and then applies the fault.
func AfterEffect(fault Fault) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		fault(w, r, next)
	}
}

// Delay waits before the request takes effect. If the client disconnects meanwhile, it has no effect.
func Delay(d time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-time.After(d):
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// DelayAnswer waits between the effect and the response.
func DelayAnswer(d time.Duration) Fault {
	return ChangeAnswer(func(a *httptest.ResponseRecorder, r *http.Request) {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	})
}

// Hang never responds and keeps the connection open, like a broken network. The request has no
// effect. It ends when the client gives up or the server stops.
func Hang() Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }
}

// Hold holds requests back until release is closed.
func Hold(release <-chan struct{}) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-release:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// Status responds with an error, without effect. With an empty code the body is {}.
func Status(status int, code string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		answer(w, fail(status, code, "this is a fault for a test"))
	}
}

// Limit responds with 429. header sets Retry-After (whole seconds, rounded up), body sets
// retry_after_ms; zero omits it.
func Limit(header, body time.Duration) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		f := fail(http.StatusTooManyRequests, "M_LIMIT_EXCEEDED", "Too many requests")
		if header > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int((header+time.Second-1)/time.Second)))
		}
		if body > 0 {
			f.more = map[string]any{"retry_after_ms": body.Milliseconds()}
		}
		answer(w, f)
	}
}

// HTML responds with status 200 and a web page, like a proxy in front of a server.
func HTML() Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<html><body><h1>Welcome to the hotel's wireless network</h1></body></html>")
	}
}

// Truncate lets the request take effect and sends half of the response, with a matching length.
func Truncate() Fault {
	return ChangeAnswer(func(a *httptest.ResponseRecorder, _ *http.Request) { a.Body.Truncate(a.Body.Len() / 2) })
}

// ChangeAnswer lets the request take effect and then changes the response.
func ChangeAnswer(change func(answer *httptest.ResponseRecorder, r *http.Request)) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		a := httptest.NewRecorder()
		next.ServeHTTP(a, r)
		change(a, r)
		maps.Copy(w.Header(), a.Header())
		w.Header().Set("Content-Length", strconv.Itoa(a.Body.Len()))
		w.WriteHeader(a.Code)
		_, _ = w.Write(a.Body.Bytes())
	}
}

// Timelines changes the timeline of every joined room in a /sync response. An empty timeline is
// omitted.
func Timelines(change func(room string, events []json.RawMessage) []json.RawMessage) Fault {
	return ChangeAnswer(func(a *httptest.ResponseRecorder, _ *http.Request) {
		var body map[string]json.RawMessage
		var rooms map[string]map[string]map[string]json.RawMessage
		if json.Unmarshal(a.Body.Bytes(), &body) != nil || json.Unmarshal(body["rooms"], &rooms) != nil {
			return // an error response has no timelines
		}
		for id, room := range rooms["join"] {
			var timeline map[string]json.RawMessage
			var events []json.RawMessage
			if json.Unmarshal(room["timeline"], &timeline) != nil || json.Unmarshal(timeline["events"], &events) != nil {
				continue
			}
			timeline["events"] = mustJSON(change(id, events))
			room["timeline"] = mustJSON(timeline)
		}
		body["rooms"] = mustJSON(rooms)
		a.Body.Reset()
		a.Body.Write(mustJSON(body))
	})
}

// Duplicate repeats every event of a /sync.
func Duplicate() Fault {
	return Timelines(func(_ string, events []json.RawMessage) []json.RawMessage {
		var twice []json.RawMessage
		for _, e := range events {
			twice = append(twice, e, e)
		}
		return twice
	})
}

// Reorder reverses the events of each room in a /sync.
func Reorder() Fault {
	return Timelines(func(_ string, events []json.RawMessage) []json.RawMessage {
		slices.Reverse(events)
		return events
	})
}

// LimitTimelines limits the timelines of a /sync to n events. Older events are a gap, which
// /messages fills.
func LimitTimelines(n int) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), cutKey{}, n)))
	}
}

type cutKey struct{}

// mustJSON encodes a value that came from JSON.
func mustJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
