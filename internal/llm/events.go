package llm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"reverie/internal/lazyregexp"
	"reverie/internal/text"
)

const (
	maxAnswer  = 16 << 20 // bytes of one answer on the wire: a runaway server must not fill the memory
	maxRefusal = 64 << 10 // bytes read of an error answer
)

// garbledError reports an answer that violates the protocol.
type garbledError struct{ why string }

func (e *garbledError) Error() string { return e.why }

func garbled(format string, args ...any) error { return &garbledError{fmt.Sprintf(format, args...)} }

// eventStream reads JSON documents from a server-sent event stream. It drops comments and event
// names. One plain JSON document counts as one event, for servers that ignore "stream".
type eventStream struct {
	in      *bufio.Reader
	alive   func() // called whenever the server sends something
	size    int
	started bool // the first line was seen
	done    bool // [DONE] was seen
}

// next returns the next event, or io.EOF after the last one.
func (e *eventStream) next() ([]byte, error) {
	for !e.done {
		line, err := e.in.ReadBytes('\n')
		if e.size += len(line); e.size > maxAnswer {
			return nil, garbled("the answer is larger than %d MiB", maxAnswer>>20)
		}
		if len(line) > 0 {
			e.alive()
		}
		line = bytes.TrimSpace(line)
		if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
			return nil, err
		}
		if len(line) == 0 {
			continue
		}
		if !utf8.Valid(line) {
			return nil, &garbledError{"the answer is not valid UTF-8"}
		}
		first := !e.started
		e.started = true
		data, isData := bytes.CutPrefix(line, []byte("data:"))
		data = bytes.TrimSpace(data)
		switch {
		case isData && string(data) == "[DONE]":
			e.done = true
		case isData && len(data) > 0:
			return data, nil
		case first && line[0] == '{':
			rest, err := io.ReadAll(e.in)
			return append(line, rest...), err
		case line[0] == '{': // an error within a stream, without its "data:"
			return line, nil
		case first && !isData && !eventField().Match(line):
			return nil, &garbledError{"the answer is no event stream but begins with " + excerpt(line)}
		}
	}
	return nil, io.EOF
}

var eventField = lazyregexp.New(`^(?:event|id|retry)?:`)

// excerpt returns the first 80 runes of b on one line, quoted.
func excerpt(b []byte) string {
	return fmt.Sprintf("%q", text.Clip(strings.Join(strings.Fields(string(b[:min(len(b), 400)])), " "), 80))
}
