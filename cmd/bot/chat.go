package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"reverie/internal/session"
)

// terminalRoom is the room of `bot chat`: its history survives a restart as
// that of any room does.
const terminalRoom = "terminal"

type chatCommand struct{}

// Run talks with the person at the terminal as the bot would in a direct chat
// with its first owner. When standard input is no terminal, each line is one
// message, each answer is printed, and the end of input ends it with success.
func (chatCommand) Run(ctx context.Context, c console, path configPath) error {
	cfg, log, err := load(path, c.err)
	if err != nil {
		return err
	}
	live := isTerminal(c.in) && isTerminal(c.out)
	if live && isTerminal(c.err) {
		log = newLogger(c.err, LogConfig{Level: "error", Format: cfg.Log.Format}) // more would run through the conversation
	}
	b, err := openBot(ctx, cfg, log, true)
	if err != nil {
		return err
	}
	defer b.close()

	t := &terminal{
		screen:  &screen{out: c.out, live: live, name: cfg.Name},
		handled: make(chan string, 1),
		data:    cfg.Data,
	}
	sessions := b.sessions(t, nil)
	work, stop := context.WithCancel(ctx)
	b.models.Detect(ctx) // the first message is to have the right window
	runs := []func(context.Context) error{sessions.Run, b.models.Run, b.watchGPU, b.warmMemory, b.runVectors, b.runHarvest, b.runNightly, b.scheduler.Run}
	ended := make(chan error, len(runs))
	for _, run := range runs {
		// go: all waited for below, before Run returns
		go func() { ended <- run(work) }()
	}
	if t.live {
		t.say("This is %s, without Matrix. Write a message; !help lists commands; Ctrl-D ends.\n", cfg.Name)
	}
	err = t.talk(work, readLines(c.in), sessions, cfg.owner())
	stop()
	for range runs {
		err = errors.Join(err, <-ended)
	}
	return err
}

// terminal is the transport of `bot chat`.
type terminal struct {
	*screen
	handled chan string
	data    string   // the data folder
	asked   sync.Map // ids of questions that were shown; a terminal has no poll to close
}

// talk delivers line after line, each after the last one was answered.
func (t *terminal) talk(ctx context.Context, lines <-chan line, m *session.Manager, owner string) error {
	for {
		if t.live {
			t.say(promptSig)
		}
		var l line
		select {
		case l = <-lines:
		case <-ctx.Done():
			return nil
		}
		switch {
		case errors.Is(l.err, io.EOF):
			return nil
		case l.err != nil:
			return fmt.Errorf("chat: %w", l.err)
		case l.text == "":
			continue
		}
		in := session.Inbound{ID: "terminal:" + rand.Text(), Room: terminalRoom, Sender: owner, Text: l.text, Private: true, At: time.Now()}
		if err := m.Deliver(ctx, in); err != nil {
			return err
		}
		select {
		case <-t.handled:
		case <-ctx.Done():
			return nil
		}
	}
}

// Say prints what m adds to what stands on the screen already.
func (t *terminal) Say(_ context.Context, _ string, m session.Outgoing) error {
	if m.File != nil {
		m.Text = strings.TrimSpace(fmt.Sprintf("%s\n[%s: %s]", m.Text, m.File.Name, filepath.Join(t.data, m.File.Path)))
	}
	if _, asked := t.asked.Load(m.ID); asked && len(m.Options) == 0 {
		return nil
	}
	for i, o := range m.Options {
		t.asked.Store(m.ID, true)
		m.Text += fmt.Sprintf("\n%d. %s", i+1, o.Text)
	}
	if m.Draft && m.Notice { // it only says what the answer waits for
		t.progress(m.Text)
		return nil
	}
	t.show(m.ID, m.Text, !m.Draft)
	return nil
}

// Typing shows that an answer is on its way.
func (t *terminal) Typing(_ context.Context, _ string, on bool) { t.writing(on) }

// Withdrawn is never true: what was typed was typed.
func (t *terminal) Withdrawn(context.Context, string) (bool, error) { return false, nil }

// Handled lets the next line in.
func (t *terminal) Handled(_ context.Context, id string) error {
	t.handled <- id
	return nil
}
