package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	reverie "reverie"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/manner"
	"reverie/internal/memory"
	"reverie/internal/profile"
	"reverie/internal/prompt"
	"reverie/internal/prompt/section"
	"reverie/internal/session"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/task"
	"reverie/internal/tool"
	"reverie/internal/tool/workspace"
	"reverie/internal/trust"
	"reverie/internal/usage"
	"reverie/internal/voice"
	"reverie/internal/window"
)

const (
	owner = "@me:example.org"
	room  = "!talk:example.org"
)

// transport is a chat that shows final answers to a person who waits for them.
type transport struct {
	db      *store.DB
	answer  string
	handled chan bool
}

func (t *transport) Send(_ context.Context, _ string, m chat.Outgoing) error {
	if !m.Draft && !m.Notice {
		t.answer = m.Text
	}
	return nil
}

func (t *transport) SendFinal(ctx context.Context, room string, m chat.Outgoing, _ []string, also func(context.Context, *sql.Tx) error) error {
	if err := store.InTx(ctx, t.db, func(tx *sql.Tx) error { return also(ctx, tx) }); err != nil {
		return err
	}
	return t.Send(ctx, room, m)
}

func (t *transport) Redact(context.Context, string, string) error           { return nil }
func (t *transport) ShowTyping(context.Context, string, bool)               {}
func (t *transport) MessageCancelled(context.Context, string) (bool, error) { return false, nil }
func (t *transport) Ack(context.Context, string) error                      { t.handled <- true; return nil }

// run is one talk with a persona and a window.
type run struct {
	talk     *talk
	persona  string
	window   int
	leaveOut string // "notes": no notes; "style": no rules of style and no notes
	turns    int
}

// result is what was kept in a run.
type result struct {
	run
	asked, kept map[string]int // checks in the last turns, by field
	end         [2]int         // checks in the very last turn, and those kept
	reused      float64        // share of a request with which the next one begins
	within      float64        // the same, without requests after a summary
	summaries   int
	notes       int
	longest     int
	faults      []string
}

// play has the talk and judges its last turns.
func (r run) play(ctx context.Context) (_ result, err error) {
	dir, err := os.MkdirTemp("", "manners-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	m := &model{name: fmt.Sprint(r.talk.name, r.persona, r.window)}
	server := httptest.NewServer(m)
	defer server.Close()

	if err := storetest.WriteDefaults(dir); err != nil {
		return result{}, err
	}
	soul := []byte("Be kind, and do not pretend.\n")
	if err := os.WriteFile(filepath.Join(dir, "SOUL.md"), soul, 0o600); err != nil {
		return result{}, err
	}
	if r.leaveOut == "style" {
		if err := removeStyles(dir); err != nil {
			return result{}, err
		}
	}
	db, err := store.Open(ctx, filepath.Join(dir, "bot.db"), reverie.Migrations)
	if err != nil {
		return result{}, err
	}
	defer db.Close()
	var minutes atomic.Int64
	now := func() time.Time {
		return time.Date(2026, 11, 3, 8, 0, 0, 0, time.UTC).Add(time.Duration(minutes.Load()) * time.Minute)
	}
	talks, stop, err := r.open(ctx, dir, db, server.URL+"/v1", now)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	out := result{run: r, asked: map[string]int{}, kept: map[string]int{}}
	wants := r.talk.wants(r.persona)
	for turn := 1; turn <= r.turns; turn++ {
		minutes.Add(4)
		answer, err := talks(turn, r.talk.says(turn), now())
		if err != nil {
			return result{}, err
		}
		if turn <= r.turns-judged {
			continue
		}
		for field, value := range wants {
			out.asked[field]++
			kept := 0
			if check(answer, field, value) {
				kept = 1
			}
			out.kept[field] += kept
			if turn == r.turns {
				out.end[0], out.end[1] = out.end[0]+1, out.end[1]+kept
			}
		}
	}
	out.reused, out.within = float64(m.same)/float64(max(1, m.compared)), float64(m.sameWithin)/float64(max(1, m.comparedWithin))
	out.notes, out.longest = m.notes, m.longest
	if m.fault != "" {
		out.faults = append(out.faults, m.fault)
	}
	if out.summaries, err = store.Value[int](ctx, db, `SELECT count(*) FROM compaction`); err != nil {
		return out, err
	}
	if after, err := os.ReadFile(filepath.Join(dir, "SOUL.md")); err != nil || !bytes.Equal(after, soul) {
		out.faults = append(out.faults, fmt.Sprintf("SOUL.md was written: %q %v", after, err))
	}
	return out, nil
}

// removeStyles takes the lines of style off the personas in dir.
func removeStyles(dir string) error {
	for persona := range ofPersona {
		path := filepath.Join(dir, voice.PersonaFile(persona))
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, rest, _ := voice.SplitOffStyle(string(b))
		if err := os.WriteFile(path, []byte(strings.TrimSpace(rest)+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// open starts a session as `bot chat` does. say delivers a message and returns its answer.
func (r run) open(ctx context.Context, dir string, db *store.DB, url string, now func() time.Time) (
	say func(turn int, text string, at time.Time) (string, error), stop func() error, err error,
) {
	mem, err := memory.Open(ctx, memory.Config{DB: db, Dir: dir, Owner: owner, Backend: "flat_file"})
	if err != nil {
		return nil, nil, err
	}
	tasks, skills, past := task.NewStore(db, task.Config{}), skill.Open(filepath.Join(dir, "skills"), nil), history.NewStore(db)
	if r.talk.open {
		label := trust.Label{Integrity: trust.User, Readers: trust.PersonReaders(owner)}
		if _, err := tasks.Add(ctx, task.Task{Room: room, User: owner, Label: label, Content: "Send the first chapter"}); err != nil {
			return nil, nil, err
		}
	}
	tools := tool.New(tool.Config{Files: workspace.Open(workspace.Config{Dir: dir, DB: db}), Memory: mem, Tasks: tasks,
		Goals: goal.NewStore(db, now), Skills: skills, Dir: dir, Location: time.UTC})
	profiles, noticed := profile.Store{Dir: dir, Location: time.UTC}, manner.Store{DB: db}
	style := r.talk.style
	if r.leaveOut == "style" {
		noticed, style = manner.Store{}, nil
	}
	assembler, err := prompt.New(prompt.Config{Layout: "stable", DB: db, History: past, Sources: &section.Sources{
		Dir: dir, Defaults: fs.FS(reverie.Data), Name: "Reverie", Profiles: profiles, SeedLanguage: "en", Memory: mem, Tasks: tasks,
		Skills: skills, Manner: noticed, KnownTools: tools.Names(), NoSteering: r.leaveOut != "",
		Voice: voice.Voice{Persona: r.persona, Style: style, Dir: dir}}})
	if err != nil {
		return nil, nil, err
	}
	models := llm.New(llm.Config{Roles: map[string][]string{"chat": {"local"}}, Retry: llm.Retry{Attempts: 1}, Models: []llm.ModelConfig{
		{Name: "local", BaseURL: url, Model: "m", MaxOutput: 500, Window: r.window}}})
	counts := &usage.Store{DB: db, Location: time.UTC, Now: now}
	t := &transport{db: db, handled: make(chan bool, 1)}
	s := session.New(session.Config{
		Config: command.Config{Models: models, History: past, Memory: mem, Tasks: tasks, Skills: skills, Manner: noticed, Profiles: profiles,
			Usage: counts, Now: now},
		DB: db, Prompt: assembler, Tools: tools, Transport: t, Rooms: chat.OneRoom{Room: room, Person: owner}, Owners: []string{owner},
		WindowInputs: func() window.Inputs { return window.InputsOf(models.Limits("chat")[0]) }})
	work, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	// go: ends with stop
	go func() { done <- s.Run(work) }()
	say = func(turn int, text string, at time.Time) (string, error) {
		t.answer = ""
		in := chat.Message{Head: chat.Head{ID: fmt.Sprint("$", turn), Room: room, Sender: owner, Private: true, At: at}, Text: text}
		if err := s.Deliver(ctx, in); err != nil {
			return "", err
		}
		select {
		case <-t.handled:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if t.answer == "" {
			return "", fmt.Errorf("%s, turn %d: no answer", r.talk.name, turn)
		}
		return t.answer, nil
	}
	return say, func() error { cancel(); return <-done }, nil
}
