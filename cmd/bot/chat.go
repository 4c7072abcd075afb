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
	"reverie/internal/pace"
	"reverie/internal/session"
	"reverie/internal/store"
	"reverie/internal/tty"
)

// terminalRoom is the room of `bot chat`; its history survives restarts.
const terminalRoom = "terminal"

type chatCommand struct{}

// Run chats with the person at the terminal. The chat works like a direct chat with the first
// owner. Without a terminal, each input line is one message, and the end of input ends it with
// success.
func (chatCommand) Run(ctx context.Context, c console, path filePath) error {
	cfg, _, err := loadConfig(path, io.Discard, true)
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
	if cfg.Log.Level != "debug" { // log lines mix with answers
		cfg.Log.Level = "error"
	}
	b, err := openBot(ctx, cfg, newLogger(logs, cfg.Log), true)
	if err != nil {
		return err
	}
	defer b.close()

	t := &terminal{Screen: screen, db: b.db, data: cfg.Data, answered: make(chan struct{}, 1)}
	inspector, err := openInspector(ctx, cfg.Web.Listener)
	if err != nil {
		return err
	}
	s := b.connect(connection{transport: t, rooms: chat.OneRoom{Room: terminalRoom, Person: cfg.Owner()}, onlyRoom: terminalRoom,
		inspector: inspector})
	b.models.Detect(ctx) // the first message needs the right window
	work, stop := context.WithCancel(ctx)
	g, work := errgroup.WithContext(work)
	for _, run := range append(s.backgroundLoops(), s.Run) {
		g.Go(func() error { return run(work) })
	}
	t.Tell("This is %s, without Matrix. Write a message; !help lists commands; Ctrl-D or exit ends.\n"+
		"Files that you can edit, in %s: MEMORIES.txt, SOUL.md, skills/", cfg.Name, cfg.Data)
	if slices.ContainsFunc(cfg.LLM.Models, func(m config.Model) bool { return m.BaseURL == discover.Rehearsal }) {
		t.Tell("No language model is connected: `ollama run qwen3:8b` starts one, and llm.models in the configuration names it.")
	}
	t.Tell("")
	err = tty.Talk(work, in, t.busy, func(text string) error { return t.deliver(work, s.Manager, cfg.Owner(), text) },
		t.answered, func(struct{}) error { return nil })
	in.Close()
	stop()
	return errors.Join(store.Wrap(err, "chat"), g.Wait())
}

type terminal struct {
	*tty.Screen
	db    *store.DB
	data  string   // the data folder
	asked sync.Map // IDs of shown questions; a terminal cannot close a poll

	pending  sync.Map      // IDs of messages without an answer yet
	answered chan struct{} // signals that pending shrank
}

// busy reports whether an answer is pending.
func (t *terminal) busy() (some bool) {
	t.pending.Range(func(any, any) bool { some = true; return false })
	return some
}

func (t *terminal) deliver(ctx context.Context, m *session.Manager, owner, text string) error {
	in := chat.Message{Head: chat.Head{ID: "terminal:" + rand.Text(), Room: terminalRoom, Sender: owner, Private: true, At: time.Now()},
		Text: text}
	t.pending.Store(in.ID, true)
	return m.Deliver(ctx, in)
}

// Send prints what m adds to the screen.
func (t *terminal) Send(_ context.Context, _ string, m chat.Outgoing) error {
	if m.Closed {
		return nil
	}
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
	if m.Draft && m.Notice { // a progress notice
		t.Progress(m.Text)
		return nil
	}
	t.Show(m.ID, m.Text, !m.Draft)
	return nil
}

// SendFinal runs also in a transaction, then prints m.
func (t *terminal) SendFinal(ctx context.Context, room string, m chat.Outgoing, _ []string,
	also func(context.Context, *sql.Tx) error,
) error {
	if err := store.InTx(ctx, t.db, func(tx *sql.Tx) error { return also(ctx, tx) }); err != nil {
		return err
	}
	return t.Send(ctx, room, m)
}

// Redact does nothing: printed text stays.
func (t *terminal) Redact(context.Context, string, string) error { return nil }

// ShowTyping shows that an answer is being written.
func (t *terminal) ShowTyping(_ context.Context, _ string, on bool) { t.SetTyping(on) }

// MessageCancelled is always false: typed lines cannot be redacted.
func (t *terminal) MessageCancelled(context.Context, string) (bool, error) { return false, nil }

func (t *terminal) Ack(_ context.Context, id string) error {
	t.pending.Delete(id)
	pace.Wake(t.answered)
	return nil
}
