package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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

// RoundTrip implements http.RoundTripper.
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
	read, write := io.Pipe()
	a := &arriving{header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}, body: write, begun: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { write.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer func() {
			p := recover()
			if p != nil && p != any(http.ErrAbortHandler) {
				panic(p)
			}
			if p != nil {
				cancel(io.ErrUnexpectedEOF)
			} else if ctx.Err() == nil {
				a.WriteHeader(http.StatusOK)
				write.Close()
			}
			stop()
			l.mu.Lock()
			delete(l.open, &cancel)
			l.mu.Unlock()
		}()
		if down {
			return
		}
		served := r.Clone(ctx)
		served.RequestURI, served.Body = r.URL.RequestURI(), io.NopCloser(bytes.NewReader(body))
		l.handler.ServeHTTP(a, served)
	}()
	select {
	case <-a.begun:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, ContentLength: -1, Request: r, Body: closing{read, cancel},
	}, nil
}

// closing is a body whose request ends when it is closed.
type closing struct {
	*io.PipeReader
	cancel context.CancelCauseFunc
}

func (c closing) Close() error { c.cancel(context.Canceled); return c.PipeReader.Close() }

// arriving is an answer that is being written.
type arriving struct {
	header http.Header
	status int
	body   *io.PipeWriter
	begun  chan struct{} // closed once the header is fixed
}

func (a *arriving) Header() http.Header { return a.header }

func (a *arriving) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		close(a.begun)
	}
}

func (a *arriving) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

func (a *arriving) Flush() { a.WriteHeader(http.StatusOK) }

// named is a question, as in "q-ann-17".
var named = regexp.MustCompile(`\bq-[a-z]+-\d+\b`)

// echoModel is a language model that answers by naming the questions it was
// asked since its last answer. Every fifth time it takes its time, so that
// drafts are shown.
type echoModel struct {
	mu    sync.Mutex
	calls int
}

func (m *echoModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	m.mu.Lock()
	m.calls++
	pause := 20 * time.Millisecond
	if m.calls%5 == 0 {
		pause = 500 * time.Millisecond
	}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	words := append(names, strings.Fields("are good questions, and this is what there is to say to them: not much, but said with care.")...)
	for _, word := range words {
		time.Sleep(pause)
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word+" ")
	}
	fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}
