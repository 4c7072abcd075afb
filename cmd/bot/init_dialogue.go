package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// question is one thing that `bot init` asks for.
type question struct {
	label    string  // its prompt, and its name in the summary
	text     string  // explains it
	group    string  // a new answer has the later questions of its group asked again
	answer   *string // its value is the default
	optional bool    // it may be empty
	hidden   bool    // a terminal does not show what is typed
	skipped  func() bool
	before   func() // prepares the default; nil = nothing to prepare

	// check returns the answer to keep. An error has the question asked again; an answer with
	// a doubt is kept when the person gives it once more.
	check func(ctx context.Context, given string) (string, error)
	kept  bool // in spite of a doubt
}

// doubt is an error in an answer that may be right all the same.
type doubt struct{ error }

// dialogue asks questions on a terminal until the person agrees with the answers.
type dialogue struct {
	in        io.Reader
	lines     *bufio.Scanner // of in
	out       io.Writer
	questions []*question
}

var (
	errNoAnswer    = errors.New("no usable answer; nothing was written. `bot init < /dev/null` writes a file to edit by hand")
	errInterrupted = errors.New("interrupted; nothing was written")
)

// maxTries ends a dialogue that goes nowhere.
const maxTries = 5

// run asks all questions and shows the answers. agree says what Enter does with them.
func (d *dialogue) run(ctx context.Context, agree string) error {
	fmt.Fprintln(d.out, "Enter takes the answer in brackets, < goes back one question, Ctrl-D ends and writes nothing.")
	for at, end := 0, len(d.questions); ; {
		if at == end {
			chosen, err := d.summary(ctx, agree)
			if err != nil || chosen == nil {
				return err
			}
			at = slices.Index(d.questions, chosen)
			end = at + 1
			for end < len(d.questions) && d.questions[end].group == chosen.group {
				end++
			}
		}
		q := d.questions[at]
		if q.skipped != nil && q.skipped() {
			at++
			continue
		}
		before := *q.answer
		back, err := d.ask(ctx, q)
		if err != nil {
			return err
		}
		switch {
		case back:
			at = d.previous(at)
		case *q.answer == before && !q.hidden && end < len(d.questions):
			at = end // nothing that depends on it has changed
		default:
			at++
		}
	}
}

// previous is the question before one, or that one if it is the first.
func (d *dialogue) previous(at int) int {
	for i := at - 1; i >= 0; i-- {
		if q := d.questions[i]; q.skipped == nil || !q.skipped() {
			return i
		}
	}
	return at
}

// ask asks one question until its answer is good, or the person wants to go back.
func (d *dialogue) ask(ctx context.Context, q *question) (back bool, err error) {
	if q.before != nil {
		q.before()
	}
	standing := *q.answer
	doubted := ""
	fmt.Fprintf(d.out, "\n%s\n", q.text)
	for range maxTries {
		fmt.Fprint(d.out, q.label)
		switch {
		case standing != "" && q.optional && !q.hidden:
			fmt.Fprintf(d.out, " [%s; - for none]", standing)
		case standing != "" && !q.hidden:
			fmt.Fprintf(d.out, " [%s]", standing)
		}
		fmt.Fprint(d.out, ": ")
		given, err := d.line(ctx, q.hidden)
		if err != nil {
			return false, err
		}
		switch {
		case given == "<":
			return true, nil
		case given == "-" && q.optional:
			given = ""
		case given == "" && !q.hidden:
			given = standing
		}
		if given != "" && given == doubted {
			*q.answer, q.kept = given, true
			return false, nil
		}
		given, err = q.check(ctx, given)
		if ctx.Err() != nil {
			return false, errInterrupted
		}
		if err == nil {
			*q.answer, q.kept = given, false
			return false, nil
		}
		fmt.Fprintf(d.out, "  %s.\n", err)
		if errors.As(err, new(doubt)) {
			standing, doubted = given, given
			fmt.Fprintln(d.out, "  Enter keeps it all the same.")
		}
	}
	return false, errNoAnswer
}

// summary shows the answers. It returns the question to go back to; nil = the answers are right.
func (d *dialogue) summary(ctx context.Context, agree string) (*question, error) {
	var shown []*question
	fmt.Fprintln(d.out)
	for _, q := range d.questions {
		if q.skipped != nil && q.skipped() {
			continue
		}
		shown = append(shown, q)
		value := *q.answer
		switch {
		case value == "":
			value = "none"
		case q.hidden:
			value = "tried; the bot logs in with it"
		case q.kept:
			value += "  (kept, though in doubt)"
		}
		fmt.Fprintf(d.out, "%3d  %-14s %s\n", len(shown), q.label, value)
	}
	for range maxTries {
		fmt.Fprintf(d.out, "Enter %s, a number changes an answer, q ends and writes nothing: ", agree)
		given, err := d.line(ctx, false)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(given)
		switch {
		case given == "":
			return nil, nil
		case given == "<":
			return shown[len(shown)-1], nil
		case strings.EqualFold(given, "q"):
			fmt.Fprintln(d.out, "Nothing was written.")
			return nil, errSaid
		case err == nil && n >= 1 && n <= len(shown):
			return shown[n-1], nil
		}
		fmt.Fprintf(d.out, "  Type a number from 1 to %d, q, or just Enter.\n", len(shown))
	}
	return nil, errNoAnswer
}

// line reads one line. An interrupt ends the wait, and gives the terminal its echo back.
func (d *dialogue) line(ctx context.Context, hidden bool) (string, error) {
	read := func() line {
		if !d.lines.Scan() {
			return line{err: errors.Join(errors.New("no more answers; nothing was written"), d.lines.Err())}
		}
		return line{text: d.lines.Text()}
	}
	if hidden && isTerminal(d.in) {
		fd := int(unfiltered(d.in).(*os.File).Fd())
		before, err := term.GetState(fd)
		if err != nil {
			return "", err
		}
		defer func() { _ = term.Restore(fd, before); fmt.Fprintln(d.out) }()
		read = func() line {
			text, err := term.ReadPassword(fd)
			if errors.Is(err, io.EOF) {
				err = errors.New("no more answers; nothing was written")
			}
			return line{string(text), err}
		}
	}
	got := make(chan line, 1)
	// go: ends with the line or the program; nothing waits on a terminal that is not typed at
	go func() { got <- read() }()
	select {
	case l := <-got:
		if hidden {
			return l.text, l.err
		}
		return strings.TrimSpace(l.text), l.err
	case <-ctx.Done():
		return "", errInterrupted
	}
}
