package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/cmd/bot/config"
	"reverie/internal/chat"
	"reverie/internal/llm/discover"
	"reverie/internal/session"
	"reverie/internal/store"
	"reverie/internal/tty"
)

// terminalRoom is the room of `bot chat`: its history survives a restart as
// that of any room does.
const terminalRoom = "terminal"

type chatCommand struct{}

// Run talks with the person at the terminal as the bot would in a direct chat
// with its first owner. When standard input is no terminal, each line is one
// message, each answer is printed, and the end of input ends it with success.
func (chatCommand) Run(ctx context.Context, c console, path filePath) error {
	cfg, _, err := load(path, io.Discard, true)
	if err != nil {
		return err
	}
	screen := &tty.Screen{Name: cfg.Name}
	in := screen.Open(c.in, c.out, os.Getenv("TERM"))
	defer in.Close()
	logs := c.err
	if in.Live && tty.IsTerminal(c.err) {
		logs = screen
	}
	b, err := openBot(ctx, cfg, newLogger(logs, chatLog(cfg.Log)), true)
	if err != nil {
		return err
	}
	defer b.close()

	t := newTerminal(screen, b.db, cfg.Data)
	s := b.connect(connection{transport: t, rooms: chat.OneRoom{Room: terminalRoom, Person: cfg.Owner()}, only: terminalRoom})
	b.models.Detect(ctx) // the first message is to have the right window
	work, stop := context.WithCancel(ctx)
	g, work := errgroup.WithContext(work)
	for _, run := range append(s.runs(), s.sessions.Run) {
		g.Go(func() error { return run(work) })
	}
	t.Tell("This is %s, without Matrix. Write a message; !help lists commands; Ctrl-D or exit ends.\n"+editable, cfg.Name, cfg.Data)
	if b.rehearses() {
		t.Tell("%s", getModel)
	}
	t.Tell("")
	err = t.talk(work, in, s.sessions, cfg.Owner())
	in.Close()
	stop()
	return errors.Join(err, g.Wait())
}

// editable names the files of a data folder that people are meant to change.
const editable = "Files that you can edit, in %s: MEMORIES.txt, SOUL.md, skills/"

// getModel says how a person without a language model comes by one.
const getModel = "No language model is connected: `ollama run qwen3:8b` starts one, and llm.models in the configuration names it."

// rehearses reports whether the rehearsal model stands in for a language model.
func (b *bot) rehearses() bool {
	return slices.ContainsFunc(b.cfg.LLM.Models, func(m config.Model) bool { return m.BaseURL == discover.Rehearsal })
}

// chatLog is how a conversation is logged: errors only, unless the file asks for more than
// the default. Log lines would stand between the answers.
func chatLog(c config.Log) config.Log {
	if c.Level != "debug" {
		c.Level = "error"
	}
	return c
}

// terminal is the transport of `bot chat`.
type terminal struct {
	*tty.Screen
	db    *sql.DB
	data  string   // the data folder
	asked sync.Map // ids of questions that were shown; a terminal has no poll to close

	waits    sync.Map      // ids of messages that wait for their answers
	answered chan struct{} // something left waits
}

func newTerminal(screen *tty.Screen, db *sql.DB, data string) *terminal {
	return &terminal{Screen: screen, db: db, data: data, answered: make(chan struct{}, 1)}
}

// busy reports whether an answer is awaited.
func (t *terminal) busy() (some bool) {
	t.waits.Range(func(any, any) bool { some = true; return false })
	return some
}

// talk delivers what is typed until its end.
func (t *terminal) talk(ctx context.Context, in *tty.Input, m *session.Manager, owner string) error {
	err := tty.Talk(ctx, in, t.busy, func(text string) error { return t.deliver(ctx, m, owner, text) },
		t.answered, func(struct{}) error { return nil })
	if err != nil {
		return fmt.Errorf("chat: %w", err)
	}
	return nil
}

func (t *terminal) deliver(ctx context.Context, m *session.Manager, owner, text string) error {
	in := chat.Message{Head: chat.Head{ID: "terminal:" + rand.Text(), Room: terminalRoom, Sender: owner, Private: true, At: time.Now()},
		Text: text}
	t.waits.Store(in.ID, true)
	return m.Deliver(ctx, in)
}

// Send prints what m adds to what stands on the screen already.
func (t *terminal) Send(_ context.Context, _ string, m chat.Outgoing) error {
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
		t.Progress(m.Text)
		return nil
	}
	t.Show(m.ID, m.Text, !m.Draft)
	return nil
}

// SendFinal stores what also stores, and prints m.
func (t *terminal) SendFinal(ctx context.Context, room string, m chat.Outgoing, _ []string,
	also func(context.Context, *sql.Tx) error,
) error {
	if err := store.InTx(ctx, t.db, func(tx *sql.Tx) error { return also(ctx, tx) }); err != nil {
		return err
	}
	return t.Send(ctx, room, m)
}

// Redact does nothing: what was printed was printed.
func (t *terminal) Redact(context.Context, string, string) error { return nil }

// Typing shows that an answer is on its way.
func (t *terminal) Typing(_ context.Context, _ string, on bool) { t.Writing(on) }

// Cancelled is never true: what was typed was typed.
func (t *terminal) Cancelled(context.Context, string) (bool, error) { return false, nil }

// Ack lets the next line in.
func (t *terminal) Ack(_ context.Context, id string) error {
	t.waits.Delete(id)
	select {
	case t.answered <- struct{}{}:
	default:
	}
	return nil
}
