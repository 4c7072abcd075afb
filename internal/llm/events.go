package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxAnswer = 16 << 20 // bytes of one answer on the wire: a runaway server must not fill the memory
	maxRefuse = 64 << 10 // bytes read of an error answer
)

// garbledError says that what came back is no chat answer.
type garbledError struct{ why string }

func (e *garbledError) Error() string { return e.why }

// exchange is one HTTP request to a model. It stands between go-openai and the
// network because go-openai keeps neither the headers of an error (Retry-After)
// nor the time, and stumbles over what real servers mix into an event stream.
type exchange struct {
	client *http.Client
	alive  func() // called whenever the server sends something; may be nil
	body   []byte // sent in place of what go-openai wrote; nil = that
	plain  bool   // the answer is a document and no event stream

	status int // of the response; 0 = none came
	header http.Header
	events *eventBody // of a good response

	refusal bytes.Buffer // the body of an error answer, as far as it was read
}

// Do makes the request. It implements openai.HTTPDoer.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	if x.body != nil {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(x.body)), int64(len(x.body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
	}
	resp, err := x.client.Do(req)
	if err != nil {
		return nil, err
	}
	x.status, x.header = resp.StatusCode, resp.Header
	if x.alive != nil {
		x.alive()
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		resp.Body = limited{io.TeeReader(io.LimitReader(resp.Body, maxRefuse), &x.refusal), resp.Body}
		return resp, nil
	}
	if req.Method == http.MethodGet || x.plain {
		resp.Body = limited{io.LimitReader(resp.Body, maxAnswer), resp.Body}
		return resp, nil
	}
	x.events = &eventBody{in: bufio.NewReader(io.LimitReader(resp.Body, maxAnswer+1)), body: resp.Body, alive: x.alive}
	resp.Body = x.events
	return resp, nil
}

type limited struct {
	io.Reader
	io.Closer
}

// eventBody reads a server's event stream and gives on only its data lines, in
// one spelling. Comments, blank lines and event names are dropped; a server that
// ignores "stream" and sends one JSON document is given on as one event.
type eventBody struct {
	in    *bufio.Reader
	body  io.Closer
	alive func()

	out     []byte // of a line, what was not read yet
	size    int
	started bool // the first line was seen
	done    bool // [DONE] was seen
}

// Close closes the connection's body.
func (b *eventBody) Close() error { return b.body.Close() }

// Read implements io.Reader.
func (b *eventBody) Read(p []byte) (int, error) {
	for len(b.out) == 0 {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// next reads one line and puts what is to be given on into b.out.
func (b *eventBody) next() error {
	line, err := b.in.ReadBytes('\n')
	if b.size += len(line); b.size > maxAnswer {
		return &garbledError{fmt.Sprintf("the answer is larger than %d MiB", maxAnswer>>20)}
	}
	if b.alive != nil && len(line) > 0 {
		b.alive()
	}
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return err // nil on a blank line
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !utf8.Valid(line) {
		return &garbledError{"the answer is not valid UTF-8"}
	}
	first := !b.started
	b.started = true
	data, isData := bytes.CutPrefix(line, []byte("data:"))
	switch {
	case isData:
		b.give(data)
	case first && line[0] == '{':
		return b.whole(line)
	case line[0] == '{': // an error in the middle of a stream, without its "data:"
		b.give(line)
	case first && !isEventField(line):
		return &garbledError{"the answer is no event stream but begins with " + excerpt(string(line), 80)}
	}
	return nil
}

// give hands one event on. go-openai would take {"error": for its own and lose
// it when it has another form than expected, so it gets a blank in between.
func (b *eventBody) give(data []byte) {
	data = bytes.TrimSpace(data)
	b.done = b.done || string(data) == "[DONE]"
	b.out = append(b.out[:0], "data: "...)
	if len(data) > 0 && data[0] == '{' {
		b.out = append(b.out, "{ "...)
		data = data[1:]
	}
	b.out = append(append(b.out, data...), '\n')
}

// whole reads the rest of an answer that is one JSON document.
func (b *eventBody) whole(start []byte) error {
	rest, err := io.ReadAll(b.in) // bounded like every line
	if err != nil {
		return err
	}
	var doc bytes.Buffer
	if err := json.Compact(&doc, append(start, rest...)); err != nil {
		return &garbledError{"the answer is neither an event stream nor JSON: it begins with " + excerpt(string(start), 80)}
	}
	b.give(doc.Bytes())
	return nil
}

func isEventField(line []byte) bool {
	return slices.ContainsFunc([]string{":", "event:", "id:", "retry:"}, func(f string) bool { return bytes.HasPrefix(line, []byte(f)) })
}

// excerpt is the first n runes of s on one line, quoted.
func excerpt(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		s = string(r[:n]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
