package matrixtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"time"
)

// Request is what a Match looks at.
type Request struct {
	Endpoint     string // the route's name, as in "send"
	Method, Path string
	User, Device string // who asks; empty when not logged in
	Room         string // of the path
	Body         []byte
}

// Match chooses requests. It is called with the server's lock held, one request
// at a time, and so may keep counts, but may not call the server.
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

// Times limits a match to the first n requests that it fits.
func (m Match) Times(n int) Match {
	return func(r *Request) bool {
		if n <= 0 || !m(r) {
			return false
		}
		n--
		return true
	}
}

// After leaves the first n requests alone that a match fits.
func (m Match) After(n int) Match {
	return func(r *Request) bool {
		if !m(r) {
			return false
		}
		n--
		return n < 0
	}
}

// Fault is something that goes wrong with a request. It may call next, which has
// the request take its effect and writes the answer; what is called with a
// recorder is seen by nobody.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Hook is a fault in place.
type Hook struct {
	s     *Server
	match Match
	fault Fault
	hits  int
}

// Fault puts a fault in place for the requests that match. Of several that match,
// the one put in place last sees the request first.
func (s *Server) Fault(match Match, fault Fault) *Hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &Hook{s: s, match: match, fault: fault}
	s.faults = append(s.faults, h)
	return h
}

// Remove takes the fault away. Requests that are in it stay in it.
func (h *Hook) Remove() {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	h.s.faults = slices.DeleteFunc(h.s.faults, func(o *Hook) bool { return o == h })
}

// Hits is how many requests the fault was applied to.
func (h *Hook) Hits() int {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	return h.hits
}

// matching returns the hooks for a request. The lock is held.
func (s *Server) matching(r *Request) []*Hook {
	var hooks []*Hook
	for _, h := range s.faults {
		if h.match(r) {
			h.hits++
			hooks = append(hooks, h)
		}
	}
	return hooks
}

func (s *Server) through(hooks []*Hook, next http.Handler) http.Handler {
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
func DropAnswer() Fault { return Behind(Drop()) }

// Behind lets the request take effect first, unseen, and answers with the fault.
func Behind(fault Fault) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		fault(w, r, next)
	}
}

// Delay waits before the request takes effect. Who goes away meanwhile has not
// been heard.
func Delay(d time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-time.After(d):
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// DelayAnswer waits between the effect and the answer.
func DelayAnswer(d time.Duration) Fault {
	return Changed(func(a *httptest.ResponseRecorder, r *http.Request) {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	})
}

// Hang never answers and never ends the connection: as a network that lost it.
// The request has no effect. It ends when the client gives up, or with the server.
func Hang() Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }
}

// Hold keeps requests until release is closed, and then lets them go on.
func Hold(release <-chan struct{}) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-release:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// Status answers with an error, without effect. An empty code gives {} as body.
func Status(status int, code string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		answer(w, fail(status, code, "this is a fault for a test"))
	}
}

// Limit answers 429. header goes into Retry-After (whole seconds, rounded up),
// body into retry_after_ms; zero leaves it out.
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

// HTML answers 200 with a web page, as a proxy in front of a server does.
func HTML() Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<html><body><h1>Welcome to the hotel's wireless network</h1></body></html>")
	}
}

// Truncate lets the request take effect and sends half of the answer, which
// looks whole to HTTP.
func Truncate() Fault {
	return Changed(func(a *httptest.ResponseRecorder, _ *http.Request) { a.Body.Truncate(a.Body.Len() / 2) })
}

// Changed lets the request take effect and then changes the answer.
func Changed(change func(answer *httptest.ResponseRecorder, r *http.Request)) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		a := httptest.NewRecorder()
		next.ServeHTTP(a, r)
		change(a, r)
		for k, v := range a.Header() {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Length", strconv.Itoa(a.Body.Len()))
		w.WriteHeader(a.Code)
		_, _ = w.Write(a.Body.Bytes())
	}
}

// Timelines changes the timeline of every joined room of a /sync answer. A
// timeline that stays empty is left out of it.
func Timelines(change func(room string, events []json.RawMessage) []json.RawMessage) Fault {
	return Changed(func(a *httptest.ResponseRecorder, _ *http.Request) {
		var body map[string]json.RawMessage
		var rooms map[string]map[string]map[string]json.RawMessage
		if json.Unmarshal(a.Body.Bytes(), &body) != nil || json.Unmarshal(body["rooms"], &rooms) != nil {
			return // an error answer has no timelines
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

// Duplicate shows every event of a /sync twice.
func Duplicate() Fault {
	return Timelines(func(_ string, events []json.RawMessage) []json.RawMessage {
		var twice []json.RawMessage
		for _, e := range events {
			twice = append(twice, e, e)
		}
		return twice
	})
}

// Reorder shows the events of each room in a /sync in reverse.
func Reorder() Fault {
	return Timelines(func(_ string, events []json.RawMessage) []json.RawMessage {
		slices.Reverse(events)
		return events
	})
}

// Cut makes the timelines of a /sync hold n events at most: what is older is a
// gap, to be filled with /messages.
func Cut(n int) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), cutKey{}, n)))
	}
}

type cutKey struct{}

// mustJSON is for values that came from JSON.
func mustJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
