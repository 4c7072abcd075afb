package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// screen prints a conversation. On a terminal it shows that an answer is being
// written and lets it grow; elsewhere it prints finished messages only.
type screen struct {
	out  io.Writer
	live bool
	name string // of the bot

	mu      sync.Mutex
	id      string // the message that is growing
	shown   string // how much of it stands there
	waiting bool   // the "is writing" line stands there
}

const (
	clearLine = "\r\x1b[K"
	promptSig = "\n> "
)

// show makes message id read text; done says that it will not change again.
func (s *screen) show(id, text string, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !done && !s.live {
		return
	}
	s.clear()
	if s.id != id {
		s.id, s.shown = id, ""
		if s.live {
			fmt.Fprintf(s.out, "\n%s: ", s.name)
		}
	}
	rest, grown := strings.CutPrefix(text, s.shown)
	if !grown {
		rest = "\n(begun again)\n" + text
	}
	s.shown = text
	if done {
		rest += "\n"
		s.id = ""
	}
	_, _ = io.WriteString(s.out, rest)
}

// writing shows or hides that the bot is at work, unless the answer is already
// growing on the screen.
func (s *screen) writing(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live || s.id != "" || on == s.waiting {
		return
	}
	s.clear()
	if on {
		fmt.Fprintf(s.out, "%s is writing…", s.name)
		s.waiting = true
	}
}

// progress shows what an answer waits for in a line that goes away, unless the answer is
// already growing on the screen.
func (s *screen) progress(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live || s.id != "" {
		return
	}
	s.clear()
	_, _ = io.WriteString(s.out, text)
	s.waiting = true
}

// say prints a line of the program itself.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintf(s.out, format, args...)
}

func (s *screen) clear() {
	if s.waiting {
		fmt.Fprint(unfiltered(s.out).(io.Writer), clearLine)
		s.waiting = false
	}
}

// line is one line of input, or the error that ended it.
type line struct {
	text string
	err  error // io.EOF at the end
}

// readLines reads in the background, so that the caller can wait for
// something else too. The goroutine ends with the input or the program:
// a blocked read of a terminal cannot be interrupted.
func readLines(in io.Reader) <-chan line {
	lines := make(chan line)
	// go: ends with the input; nothing waits on a terminal that is not typed at
	go func() {
		scan := bufio.NewScanner(in)
		scan.Buffer(make([]byte, 0, 64<<10), 1<<20)
		for scan.Scan() {
			lines <- line{text: strings.TrimSpace(scan.Text())}
		}
		err := scan.Err()
		if err == nil {
			err = io.EOF
		} else {
			err = fmt.Errorf("read a line (at most 1 MiB): %w", err)
		}
		lines <- line{err: err}
	}()
	return lines
}

func isTerminal(f any) bool {
	file, ok := unfiltered(f).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
