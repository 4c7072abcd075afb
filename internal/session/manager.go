package session

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/agent"
	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/idle"
	"reverie/internal/llm"
	"reverie/internal/media"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/settings"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/subsession"
	"reverie/internal/task"
	"reverie/internal/tool"
	"reverie/internal/window"
)

// Stores are what the sessions of all rooms share; the scopes a turn may see are decided here, in
// code, from who is in the room.
type Stores struct {
	DB       *sql.DB
	Models   *llm.Models
	Prompt   *prompt.Assembler
	Tools    *tool.Set
	History  *history.Store
	Memory   *memory.Store
	Tasks    *task.Store
	Skills   *skill.Library
	Messages *settings.Messages // what is said without a model; nil = in English
	Media    *media.Store       // what came with messages; nil = files cannot be read
}

// Times are how long things may take, or are waited for.
type Times struct {
	Grace    time.Duration // how long a running turn may go on after the end was asked for; 0 = 10 s
	Patience time.Duration // how long an answer may take before the person is told what it waits for; 0 = 8 s
	Summary  time.Duration // how long a model may take to summarise a conversation; 0 = 60 s
	Quiet    time.Duration // how long nobody has said anything when a talk is kept, so that it can be found again; 0 = 2 s
	Settle   time.Duration // how long an edited message must stay as it is before it is answered anew; 0 = 1.5 s
	Again    time.Duration // until the first new try to store what could not be stored; 0 = 1 s
}

// Limits bound what the sessions do.
type Limits struct {
	MaxRound int               // model calls within one turn; 0 = 25
	Parallel int               // turns that may run at the same time, over all rooms; 0 = 4
	FileText int               // characters of a file that the model gets; 0 = 40,000
	Helpers  subsession.Limits // of the sub-sessions
}

// Program is what the sessions ask of the rest of the program.
type Program struct {
	command.Hooks
	// Leaving is told that messages of room are about to leave its prompt; it must return at once. nil = nobody is.
	Leaving func(room string)
}

// Config is what the sessions work with.
type Config struct {
	Stores
	Times
	Limits
	Program
	Background *idle.Gate // what gives way to these sessions; nil = nothing does
	Transport  chat.Transport
	Rooms      chat.Rooms // nil = without a connection: rooms are as they were when somebody last wrote in them

	Isolation memory.Isolation // where new memories go; empty = strict
	Owners    []string
	Location  *time.Location
	Now       func() time.Time // nil = time.Now
	Log       *slog.Logger

	Events    map[chat.EventKind]Source // where the system events of each kind come from
	Objective string                    // role of the models that are asked which task a room works on; empty = none is
	Window    func() window.Inputs      // what is known of the chat model's window, asking nobody
}

// Manager keeps one Session per conversation and hands each message to its lane.
type Manager struct {
	cfg       Config
	offers    map[string][topTier + 1]agent.Offer // by mode and tier
	began     time.Time
	start     chan *Session
	turns     chan struct{} // holds a token for each turn that runs
	waiting   *idle.Priority
	goals     *goal.Store
	approvals approval.Store

	helpers *subsession.Runner // nil = there are no sub-sessions

	mu       sync.Mutex
	rooms    map[history.Talk]*Session // those at work
	stopping bool
}

// New returns a manager; nothing happens before Run.
func New(cfg Config) *Manager {
	cfg.MaxRound, cfg.Parallel = cmp.Or(cfg.MaxRound, 25), cmp.Or(cfg.Parallel, 4)
	cfg.Grace, cfg.Patience = cmp.Or(cfg.Grace, 10*time.Second), cmp.Or(cfg.Patience, 8*time.Second)
	cfg.Quiet, cfg.Settle = cmp.Or(cfg.Quiet, 2*time.Second), cmp.Or(cfg.Settle, 1500*time.Millisecond)
	cfg.Summary, cfg.Again = cmp.Or(cfg.Summary, time.Minute), cmp.Or(cfg.Again, time.Second)
	cfg.Location, cfg.Log = cmp.Or(cfg.Location, time.Local), cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Leaving == nil {
		cfg.Leaving = func(string) {}
	}
	if cfg.Rooms == nil {
		cfg.Rooms = lastWritten{db: cfg.DB}
	}
	cfg.Background = cmp.Or(cfg.Background, idle.New(cfg.Quiet, cfg.Now))
	m := &Manager{cfg: cfg, began: cfg.Now(), start: make(chan *Session, 16),
		turns: make(chan struct{}, cfg.Parallel), waiting: idle.NewPriority(), goals: goal.NewStore(cfg.DB, cfg.Now),
		rooms: map[history.Talk]*Session{}}
	m.approvals = approval.Store{DB: cfg.DB, Transport: cfg.Transport, Messages: cfg.Messages, Now: func() time.Time { return m.cfg.Now() }}
	if cfg.Helpers.Parallel > 0 {
		m.helpers = subsession.New(subsession.Config{DB: cfg.DB, Models: cfg.Models, Prompt: cfg.Prompt, Tools: cfg.Tools,
			History: cfg.History, Settings: m.settings(), Messages: cfg.Messages, Isolation: cfg.Isolation, Location: cfg.Location,
			Again: cfg.Again, Now: cfg.Now, Log: cfg.Log, Limits: cfg.Helpers, Left: cfg.Rooms.Left}, m)
		m.cfg.Events = map[chat.EventKind]Source{}
		maps.Copy(m.cfg.Events, cfg.Events)
		for _, kind := range []chat.EventKind{chat.SubSessionResult, chat.SubSessionFailed} {
			m.cfg.Events[kind] = m.helpers
		}
	}
	m.offers = offers(cfg.Tools.Specs(), cfg.Tools.Brief(), m.helpers != nil)
	return m
}

// Deliver takes a message into its room's lane and returns at once. They are answered in this
// order; what one person wrote while the room was busy is answered together.
func (m *Manager) Deliver(ctx context.Context, in chat.Inbound) error {
	m.mu.Lock()
	if m.stopping {
		m.mu.Unlock()
		return chat.ErrStopping
	}
	talk := history.TalkOf(chat.HeadOf(in).Room, chat.HeadOf(in).Branch)
	s, known := m.rooms[talk]
	if !known {
		s = newSession(m, talk)
		m.rooms[talk] = s
	}
	m.cfg.Background.Arrived()
	s.mail.put(in)
	m.mu.Unlock()
	if known {
		return nil
	}
	select {
	case m.start <- s:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run runs a goroutine per room until ctx ends, then lets running turns finish within the grace
// period. The transport delivers again what is still waiting then.
func (m *Manager) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		m.mu.Lock()
		m.stopping = true
		m.mu.Unlock()
		time.AfterFunc(m.cfg.Grace, cancel)
	})
	defer stop()
	var rooms errgroup.Group
	rooms.Go(func() error {
		if err := m.resumeApprovals(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Log.Error("questions that were left are not asked again", "err", err)
		}
		return nil
	})
	if m.helpers != nil {
		rooms.Go(func() error { m.helpers.Run(ctx); return nil })
	}
	for {
		select {
		case s := <-m.start:
			rooms.Go(func() error { s.Run(ctx, work); return nil })
		case <-ctx.Done():
			return rooms.Wait()
		}
	}
}

// Yield returns when no person waits for model, or ctx has ended.
func (m *Manager) Yield(ctx context.Context, model string) error { return m.waiting.Yield(ctx, model) }

// Preview assembles the prompt that the next message in room would get, with its tools, without changing
// anything. An unknown room is shown as a new direct conversation with the first owner.
func (m *Manager) Preview(ctx context.Context, room string) (prompt.Prompt, []llm.ToolSpec, error) {
	s := newSession(m, history.Talk(room))
	in, known, err := lastWritten{db: m.cfg.DB}.in(ctx, room)
	if err != nil {
		return prompt.Prompt{}, nil, err
	}
	if !known && len(m.cfg.Owners) > 0 {
		in.Sender = m.cfg.Owners[0]
	}
	in.Private = in.Private || !known
	return s.preview(ctx, chat.Message{Head: in})
}

// Rooms lists the rooms that have been talked in, the latest first.
func Rooms(ctx context.Context, db *sql.DB) ([]string, error) {
	rooms, err := store.Column[string](ctx, db, `SELECT room FROM session ORDER BY heard_at DESC, room`)
	if err != nil {
		return nil, fmt.Errorf("session: list rooms: %w", err)
	}
	return rooms, nil
}

// HeardAt is when somebody spoke in room last; zero = never yet.
func HeardAt(ctx context.Context, db store.DBTX, room string) (time.Time, error) {
	all, err := store.Column[int64](ctx, db, `SELECT heard_at FROM session WHERE room = ?`, room)
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	return time.Unix(all[0], 0), nil
}

func (m *Manager) rememberIn(ctx context.Context, db store.DBTX, in chat.Head) error {
	_, err := db.ExecContext(ctx, `INSERT INTO session (room, person, private, heard_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (room) DO UPDATE SET person = excluded.person, private = excluded.private, heard_at = excluded.heard_at,
			opened = iif(private AND NOT excluded.private, excluded.heard_at, opened)`,
		in.Room, in.Sender, in.Private, m.cfg.Now().Unix())
	if err != nil {
		return fmt.Errorf("session: remember room: %w", err)
	}
	return nil
}
