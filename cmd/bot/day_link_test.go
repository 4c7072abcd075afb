package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// link carries requests to a handler without a network: in a bubble of
// testing/synctest nothing may wait for a socket, because its clock stands
// still while anything does.
type link struct {
	handler http.Handler

	mu   sync.Mutex
	down bool
	open map[*context.CancelCauseFunc]struct{} // of the requests under way
}

func newLink(h http.Handler) *link {
	return &link{handler: h, open: map[*context.CancelCauseFunc]struct{}{}}
}

var errDown = errors.New("connection refused")

// cut ends all requests under way, and refuses new ones until mend.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for cancel := range l.open {
		(*cancel)(errDown)
	}
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// busy reports whether a request is under way.
func (l *link) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) > 0
}

// RoundTrip implements http.RoundTripper. An answer arrives as a whole.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	l.mu.Lock()
	down := l.down
	l.open[&cancel] = struct{}{}
	l.mu.Unlock()
	if down {
		cancel(errDown)
	}
	answer, done := httptest.NewRecorder(), make(chan struct{})
	answer.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	go func() {
		defer func() {
			if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
				panic(p)
			} else if p != nil {
				cancel(io.ErrUnexpectedEOF)
			}
			l.mu.Lock()
			delete(l.open, &cancel)
			l.mu.Unlock()
			close(done)
		}()
		if !down {
			served := r.Clone(ctx)
			served.RequestURI, served.Body = r.URL.RequestURI(), io.NopCloser(bytes.NewReader(body))
			l.handler.ServeHTTP(answer, served)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	cancel(nil)
	return answer.Result(), nil
}

// named is a question, as in "q-ann-17".
var named = regexp.MustCompile(`\bq-[a-z]+-\d+\b`)

// echoModel is a language model that answers by naming the questions it was
// asked since its last answer.
type echoModel struct{}

func (echoModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var names []string
	for _, msg := range slices.Backward(q.Messages) {
		if msg.Role == "assistant" {
			break
		}
		if msg.Role == "user" {
			names = append(named.FindAllString(msg.Content, -1), names...)
		}
	}
	time.Sleep(time.Second)
	w.Header().Set("Content-Type", "text/event-stream")
	words := append(names, strings.Fields("are good questions, and this is what there is to say to them: not much, but said with care.")...)
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", strings.Join(words, " "))
	fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}
