// Package tty shows a conversation in a terminal and reads what a person types.
//
// Screen prints messages, Input queues typed lines, and editor is the input line at the bottom.
// Text from outside never reaches the terminal unfiltered; see StripControls.
package tty

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"reverie/internal/lazyregexp"
)

// Display is a terminal with an input line at the bottom.
type Display interface {
	Print(text, status string) // whole lines of text above the line, status before it
	Width() int
}

// Screen prints a conversation, wrapped between words. On a terminal it shows the lines of an
// answer as they arrive, elsewhere finished messages only.
type Screen struct {
	Out     io.Writer
	Display Display // nil = no terminal
	Name    string

	mu     sync.Mutex
	shown  map[string][]string // the printed lines of a message, by its id
	status string              // text before the input line
}

// Show prints text as the content of message id. done means that the message is complete.
func (s *Screen) Show(id, text string, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Display == nil {
		if done {
			fmt.Fprintln(s.Out, text)
		}
		return
	}
	text = s.Name + ": " + stripControls(text)
	if done {
		text = strings.TrimSpace(text)
	}
	lines := wrap(text, s.Display.Width())
	if done {
		lines, s.status = append(lines, ""), ""
	} else { // the last line may still grow
		lines = lines[:len(lines)-1]
	}
	old := s.shown[id]
	if !done && hasPrefix(old, lines) { // nothing new
		return
	}
	if s.shown == nil {
		s.shown = map[string][]string{}
	}
	s.shown[id] = lines
	if len(old) > 0 && hasPrefix(lines, old) {
		lines = lines[len(old):]
	} else { // the first part, or a changed text
		lines = append([]string{""}, lines...)
	}
	s.print(lines)
}

func hasPrefix(lines, first []string) bool {
	return len(first) <= len(lines) && slices.Equal(lines[:len(first)], first)
}

// wrap breaks text into lines of at most room characters, between words. A longer word stays whole.
func wrap(text string, room int) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		for utf8.RuneCountInString(line) > room {
			begin := string([]rune(line)[:room+1])
			at := strings.LastIndexByte(begin, ' ')
			if at <= 0 {
				break
			}
			lines, line = append(lines, line[:at]), line[at+1:]
		}
		lines = append(lines, line)
	}
	return lines
}

func (s *Screen) print(lines []string) {
	text := ""
	if len(lines) > 0 {
		text = strings.Join(lines, "\n") + "\n"
	}
	s.Display.Print(text, s.status)
}

// SetTyping shows or hides that the bot is typing.
func (s *Screen) SetTyping(on bool) {
	if !on {
		s.Progress("")
	} else if s.status == "" {
		s.Progress(s.Name + " is writing…")
	}
}

// Progress shows the state of an answer before the input line.
func (s *Screen) Progress(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text = strings.Join(strings.Fields(stripControls(text)), " "); s.Display != nil && text != s.status {
		s.status = text
		s.print(nil)
	}
}

// Tell prints the program's own words to a person at a terminal.
func (s *Screen) Tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Display == nil {
		return
	}
	s.print(wrap(stripControls(fmt.Sprintf(format, args...)), s.Display.Width()))
}

// Write prints lines of the log.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(strings.Split(strings.TrimSuffix(stripControls(string(p)), "\n"), "\n"))
	return len(p), nil
}

// Input is the queue of typed lines. On a terminal each is sent at once, elsewhere after the
// previous answer. A !stop never waits.
type Input struct {
	Live    bool
	screen  *Screen
	lines   <-chan Line // nil = end of input
	waiting []string
	restore func() // restores the terminal; nil = nothing to restore
}

// Close restores the terminal. It may be called again.
func (t *Input) Close() {
	if t.restore != nil {
		t.restore()
	}
}

func (t *Input) add(l Line) error {
	switch {
	case errors.Is(l.Err, io.EOF), t.Live && slices.Contains([]string{"exit", "quit", "/exit", "/quit"}, l.Text):
		t.lines = nil
		t.Close()
	case l.Err != nil:
		return l.Err
	case l.Text != "":
		t.waiting = append(t.waiting, l.Text)
	}
	return nil
}

// next returns the next line to send. busy says that an answer is awaited.
func (t *Input) next(busy bool) (text string, ok bool) {
	at := 0
	if busy && !t.Live {
		at = slices.IndexFunc(t.waiting, func(l string) bool { return strings.EqualFold(l, "!stop") })
	}
	if at < 0 || at >= len(t.waiting) {
		return "", false
	}
	text = t.waiting[at]
	t.waiting = slices.Delete(t.waiting, at, at+1)
	return text, true
}

// EndsAfterAnswer is printed when the input ends while an answer is awaited.
const EndsAfterAnswer = "This ends after the answer. Press Ctrl-C twice to end it at once."

// Talk sends the typed lines until all are answered or ctx ends. busy reports whether an answer is
// awaited. It changes with events, which take handles.
func Talk[E any](ctx context.Context, in *Input, busy func() bool, send func(text string) error,
	events <-chan E, take func(E) error,
) error {
	for in.lines != nil || len(in.waiting) > 0 || busy() {
		var err error
		if text, ok := in.next(busy()); ok {
			err = send(text)
		} else {
			select {
			case l := <-in.lines:
				if err = in.add(l); err == nil && in.lines == nil && busy() {
					in.screen.Tell(EndsAfterAnswer)
				}
			case e := <-events:
				err = take(e)
			case <-ctx.Done():
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Line is one line of input, or the error that ended it.
type Line struct {
	Text string
	Err  error // io.EOF at the end
}

// ReadLines reads lines of in, see readLines.
func ReadLines(in io.Reader) <-chan Line {
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, 1<<20)
	return readLines(func() (string, error) {
		if scan.Scan() {
			return scan.Text(), nil
		}
		if err := scan.Err(); err != nil {
			return "", fmt.Errorf("read a line (at most 1 MiB): %w", err)
		}
		return "", io.EOF
	})
}

// readLines reads in a goroutine, so that the caller can wait for other events. The goroutine ends
// with the input or the program: a blocked read of a terminal cannot be interrupted.
func readLines(next func() (string, error)) <-chan Line {
	lines := make(chan Line)
	// go: ends with the input; nothing waits on a terminal that is not typed at
	go func() {
		for {
			text, err := next()
			lines <- Line{strings.TrimSpace(text), err}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(f any) bool {
	file, ok := unfiltered(f).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Open starts a conversation on in and out. With a terminal that can move its cursor it has an
// editor; kind is the value of TERM.
func (s *Screen) Open(in io.Reader, out io.Writer, kind string) *Input {
	s.Out = out
	if IsTerminal(in) && IsTerminal(out) && kind != "dumb" {
		if e, err := openEditor(unfiltered(in).(*os.File), unfiltered(out).(*os.File)); err == nil {
			s.Display = e
			return &Input{screen: s, lines: readLines(e.term.ReadLine), Live: true, restore: e.close}
		}
	}
	return &Input{screen: s, lines: ReadLines(in)}
}

const promptSig = "> "

// editor is the input line at the bottom of a terminal, with a history. Output is printed above it.
type editor struct {
	in, out *os.File
	before  *term.State // the terminal's previous mode
	term    *term.Terminal

	closed   atomic.Bool
	printing sync.Mutex // held while printing, so that close does not cut lines off
}

// openEditor switches the terminal to raw mode until close.
func openEditor(in, out *os.File) (*editor, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	e := &editor{in: in, out: out, before: before}
	e.term = term.NewTerminal(e, promptSig)
	e.resize()
	return e, nil
}

// close restores the terminal's mode.
func (e *editor) close() {
	e.printing.Lock()
	defer e.printing.Unlock()
	if e.closed.Swap(true) {
		return
	}
	_, _ = io.WriteString(e.out, "\r\n")
	_ = term.Restore(int(e.in.Fd()), e.before)
}

func (e *editor) Width() int {
	if w, _, err := term.GetSize(int(e.out.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

// resize adopts the terminal's size. It is called on each key and output, because not every system
// signals a change.
func (e *editor) resize() { _ = e.term.SetSize(e.Width(), 24) }

// Print writes whole lines above the input line, and status before it.
func (e *editor) Print(text, status string) {
	e.printing.Lock()
	defer e.printing.Unlock()
	if e.closed.Load() {
		_, _ = io.WriteString(e.out, text)
		return
	}
	e.resize()
	if status != "" {
		status += " "
	}
	e.term.SetPrompt(status + promptSig)
	_, _ = io.WriteString(e.term, text)
}

const ctrlC = 3

// Read passes keys to the editor. It turns Ctrl-C into an interrupt, as without an editor.
func (e *editor) Read(p []byte) (int, error) {
	n, err := e.in.Read(p)
	if bytes.IndexByte(p[:n], ctrlC) >= 0 {
		e.close()
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(os.Interrupt) // if that fails, the editor's end of input ends the chat
		}
	}
	e.resize()
	return n, err
}

// lineCleared matches the sequence by which the editor clears its line.
var lineCleared = lazyregexp.New("^\x1b\\[[0-9]*D\x1b\\[K")

// Write passes on what the editor draws. It clears lines from the left edge, because the editor
// takes every character to be one column wide.
func (e *editor) Write(p []byte) (int, error) {
	if e.closed.Load() {
		return len(p), nil
	}
	if lineCleared().Match(p) {
		_, _ = io.WriteString(e.out, "\r")
	}
	return e.out.Write(p)
}

// controlStripper removes terminal control characters. The printed text comes from models, servers and
// people, who must not move the cursor. Each Write must contain whole characters.
type controlStripper struct{ w io.Writer }

// StripControls returns a writer to w that removes terminal control characters.
func StripControls(w io.Writer) io.Writer { return controlStripper{w} }

// unfiltered returns the writer below a controlStripper, for the program's own control codes.
func unfiltered(w any) any {
	if p, ok := w.(controlStripper); ok {
		return p.w
	}
	return w
}

// IsControl reports whether r is a terminal control or changes the text direction.
func IsControl(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// stripControls removes terminal control characters.
func stripControls(text string) string {
	return strings.Map(func(r rune) rune {
		if IsControl(r) {
			return -1
		}
		return r
	}, text)
}

func (p controlStripper) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, stripControls(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
