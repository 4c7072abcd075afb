package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// display is a terminal with a line at its bottom where a person types.
type display interface {
	print(text, status string) // whole lines of text above the line, status in front of it
	width() int
}

// screen prints a conversation as it is written, wrapped between words. At a terminal it shows the lines of an answer
// as they come; elsewhere it prints finished messages only.
type screen struct {
	out     io.Writer
	display display // nil = no terminal
	name    string

	mu     sync.Mutex
	shown  map[string]*printed // by the message's id
	last   string              // the message that was printed last
	status string              // what stands in front of the line that is typed
}

// message is one message of the bot.
type message struct {
	id, text string
	done     bool // it is not being written any more
	notice   bool // it is a status or an error
}

// printed is what stands of a message on the screen.
type printed struct {
	lines []string
	room  int // the columns for which they were wrapped
	done  bool
}

const changedAnswer = "The answer has changed. This is all of it:"

// show makes a message read as m says.
func (s *screen) show(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.display == nil {
		if m.done {
			fmt.Fprintln(s.out, m.text)
		}
		return
	}
	if s.shown == nil {
		s.shown = map[string]*printed{}
	}
	old, again := s.shown[m.id]
	if !again {
		old = &printed{room: s.display.width()}
		s.shown[m.id] = old
	}
	text := s.name + ": " + withoutCommands(m.text)
	if m.done {
		text = strings.TrimSpace(text)
	}
	lines := wrap(text, old.room)
	if !m.done { // the last one may become longer
		lines = lines[:len(lines)-1]
	}
	var out []string
	begun := len(old.lines) > 0
	switch {
	case !m.done && len(lines) <= len(old.lines) && slices.Equal(lines, old.lines[:len(lines)]):
	case len(lines) < len(old.lines) || !slices.Equal(old.lines, lines[:len(old.lines)]):
		out = append(out, "")
		if !m.notice {
			out = append(out, changedAnswer)
		}
		out = append(out, lines...)
	case begun && len(lines) > len(old.lines) && s.last != m.id:
		out = append(append(out, "", s.name+", further:"), lines[len(old.lines):]...)
	default:
		if !begun && len(lines) > 0 {
			out = append(out, "")
		}
		out = append(out, lines[len(old.lines):]...)
	}
	if len(out) > 0 {
		s.last, old.lines = m.id, lines
	}
	if m.done {
		if !old.done || len(out) > 0 {
			out = append(out, "")
		}
		s.status = ""
	}
	old.done = m.done
	s.print(out)
}

// wrap cuts text into lines of at most room characters, between words. What has no blank to cut
// at is left to the terminal.
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

// print writes whole lines.
func (s *screen) print(lines []string) {
	text := ""
	if len(lines) > 0 {
		text = strings.Join(lines, "\n") + "\n"
	}
	s.display.print(text, s.status)
}

// writing shows or hides that the bot is at work.
func (s *screen) writing(on bool) {
	if !on {
		s.progress("")
	} else if s.status == "" {
		s.progress(s.name + " is writing…")
	}
}

// progress shows what an answer waits for in front of the line that is typed.
func (s *screen) progress(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text = strings.Join(strings.Fields(withoutCommands(text)), " "); s.display != nil && text != s.status {
		s.status = text
		s.print(nil)
	}
}

// say prints words of the program itself to a person at a terminal.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.display == nil {
		return
	}
	s.print(wrap(withoutCommands(fmt.Sprintf(format, args...)), s.display.width()))
}

// Write prints lines of the log.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(strings.Split(strings.TrimSuffix(withoutCommands(string(p)), "\n"), "\n"))
	return len(p), nil
}

// typed is what a person has typed and not sent yet. At a terminal each line is sent when it
// is typed, elsewhere when the one before has been answered. A !stop never waits.
type typed struct {
	lines   <-chan line
	live    bool
	waiting []string
	ended   bool   // there will be no more
	restore func() // gives the terminal back; nil = there is none
}

// close gives the terminal back. It may be called again.
func (t *typed) close() {
	if t.restore != nil {
		t.restore()
	}
}

// more yields the next line; nil where there will be no more.
func (t *typed) more() <-chan line {
	if t.ended {
		return nil
	}
	return t.lines
}

// add takes in what more yielded.
func (t *typed) add(l line) error {
	switch {
	case errors.Is(l.err, io.EOF), t.live && slices.Contains([]string{"exit", "quit", "/exit", "/quit"}, l.text):
		t.ended = true
		t.close()
	case l.err != nil:
		return l.err
	case l.text != "":
		t.waiting = append(t.waiting, l.text)
	}
	return nil
}

// next returns the line to be sent now; busy says that an answer is awaited.
func (t *typed) next(busy bool) (text string, ok bool) {
	at := 0
	if busy && !t.live {
		at = slices.IndexFunc(t.waiting, func(l string) bool { return strings.EqualFold(l, "!stop") })
	}
	if at < 0 || at >= len(t.waiting) {
		return "", false
	}
	text = t.waiting[at]
	t.waiting = slices.Delete(t.waiting, at, at+1)
	return text, true
}

// over reports whether all was typed, sent and answered.
func (t *typed) over(busy bool) bool { return t.ended && len(t.waiting) == 0 && !busy }

// line is one line of input, or the error that ended it.
type line struct {
	text string
	err  error // io.EOF at the end
}

// readLines reads in the background, so that the caller can wait for
// something else too. The goroutine ends with the input or the program:
// a blocked read of a terminal cannot be interrupted.
func readLines(next func() (string, error)) <-chan line {
	lines := make(chan line)
	// go: ends with the input; nothing waits on a terminal that is not typed at
	go func() {
		for {
			text, err := next()
			lines <- line{strings.TrimSpace(text), err}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// linesOf returns the lines of in one after the other.
func linesOf(in io.Reader) func() (string, error) {
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, 1<<20)
	return func() (string, error) {
		if scan.Scan() {
			return scan.Text(), nil
		}
		if err := scan.Err(); err != nil {
			return "", fmt.Errorf("read a line (at most 1 MiB): %w", err)
		}
		return "", io.EOF
	}
}

func isTerminal(f any) bool {
	file, ok := unfiltered(f).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// open makes a conversation of a console: with an editor where a person sits at a terminal
// that can move its cursor.
func (s *screen) open(c console) *typed {
	s.out = c.out
	if isTerminal(c.in) && isTerminal(c.out) && os.Getenv("TERM") != "dumb" {
		if e, err := openEditor(unfiltered(c.in).(*os.File), unfiltered(c.out).(*os.File)); err == nil {
			s.display = e
			return &typed{lines: readLines(e.term.ReadLine), live: true, restore: e.close}
		}
	}
	return &typed{lines: readLines(linesOf(c.in))}
}
