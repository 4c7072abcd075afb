package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"sync"
	"sync/atomic"

	"golang.org/x/term"
)

const promptSig = "> "

// editor is the line at the bottom of a terminal where a person types, with a history. What
// is printed meanwhile stands above it.
type editor struct {
	in, out *os.File
	before  *term.State // the terminal's mode before
	term    *term.Terminal

	closed   atomic.Bool
	printing sync.Mutex // held while lines are printed, so that close does not cut them off
}

// openEditor takes over the terminal until close.
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

// close gives the terminal back as it was.
func (e *editor) close() {
	e.printing.Lock()
	defer e.printing.Unlock()
	if e.closed.Swap(true) {
		return
	}
	_, _ = io.WriteString(e.out, "\r\n")
	_ = term.Restore(int(e.in.Fd()), e.before)
}

// width is how many columns the terminal has.
func (e *editor) width() int {
	if w, _, err := term.GetSize(int(e.out.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

// resize follows the terminal's size. It is called at each key and each output, since not
// every system tells of a new size.
func (e *editor) resize() { _ = e.term.SetSize(e.width(), 24) }

// print writes whole lines above the line that is typed, and status in front of that line.
func (e *editor) print(text, status string) {
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

// Read hands keys to the editor. Ctrl-C is the signal that it is where lines are not edited.
func (e *editor) Read(p []byte) (int, error) {
	n, err := e.in.Read(p)
	if bytes.IndexByte(p[:n], ctrlC) >= 0 {
		e.close()
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(os.Interrupt) // if it cannot be sent, the editor's end of input ends the chat
		}
	}
	e.resize()
	return n, err
}

// lineCleared is how the editor begins to clear its line.
var lineCleared = regexp.MustCompile("^\x1b\\[[0-9]*D\x1b\\[K")

// Write passes on what the editor draws. It clears its line from the left edge, because the
// editor takes every character to be one column wide.
func (e *editor) Write(p []byte) (int, error) {
	if e.closed.Load() {
		return len(p), nil
	}
	if lineCleared.Match(p) {
		_, _ = io.WriteString(e.out, "\r")
	}
	return e.out.Write(p)
}
