package session

import (
	"cmp"
	"context"
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
	"reverie/internal/questions"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/subsession"
	"reverie/internal/tool"
	"reverie/internal/window"
)

// Times are timeouts and delays.
type Times struct {
	Grace          time.Duration // that a running turn gets after shutdown was requested; 0 = 10 s
	ProgressAfter  time.Duration // until a slow answer shows a progress notice; 0 = 8 s
	SummaryTimeout time.Duration // of the model that summarises a conversation; 0 = 60 s
	IdleAfter      time.Duration // silence before idle work: indexing, finding the current task; 0 = 2 s
	EditDebounce   time.Duration // an edit is applied after this time without another one; 0 = 1.5 s
	RetryDelay     time.Duration // before the first retry of a failed write; 0 = 1 s
}

// Limits bound the work of all sessions.
type Limits struct {
	MaxRound    int // model calls within one turn; 0 = 25
	Parallel    int // turns that may run at the same time, over all rooms; 0 = 4
	FileText    int // characters of a file that the model gets; 0 = 40,000
	SubSessions subsession.Limits
}

// Config configures a Manager.
type Config struct {
	// New sets Questions, Goals, Settings, Helpers and Started. Now is time.Now if it is nil, and a nil
	// Messages says everything in English.
	command.Config
	DB     *store.DB
	Prompt *prompt.Assembler
	Tools  *tool.Set
	Media  *media.Store // received files; nil = files cannot be read
	Times
	Limits

	// BeforeEvict is called before messages of a conversation leave its prompt. It returns at once; may be nil.
	BeforeEvict func(room string)

	Background *idle.Gate     // background work that yields to these sessions; nil = none
	Waiting    *idle.Priority // people who wait for a model; nil = only these sessions use it
	Transport  chat.Transport
	Rooms      chat.Rooms // nil = without a connection, see offlineRooms

	Isolation memory.Isolation // where new memories go; empty = strict
	Owners    []string
	Log       *slog.Logger

	Events        map[chat.EventKind]Source // the sources of system events
	ObjectiveRole string                    // of the models that find a room's current task; empty = none
	WindowInputs  func() window.Inputs      // of the chat model, without a request to its server
}

// Manager keeps one Session per conversation and passes each message to its mailbox.
type Manager struct {
	cfg         Config
	offers      map[string][topTier + 1]agent.Offer // by mode and tier
	newSessions chan *Session
	turns       chan struct{} // holds a token for each turn that runs
	goals       *goal.Store
	approvals   approval.Store
	subSessions *subsession.Runner
	indexing    sync.Mutex // held by the idle room that adds messages to the search index

	mu       sync.Mutex
	sessions map[history.Timeline]*Session // with a running goroutine
	stopping bool
}

// New returns a manager; nothing happens before Run.
func New(cfg Config) *Manager {
	cfg.MaxRound, cfg.Parallel = cmp.Or(cfg.MaxRound, 25), cmp.Or(cfg.Parallel, 4)
	cfg.Grace, cfg.ProgressAfter = cmp.Or(cfg.Grace, 10*time.Second), cmp.Or(cfg.ProgressAfter, 8*time.Second)
	cfg.IdleAfter, cfg.EditDebounce = cmp.Or(cfg.IdleAfter, 2*time.Second), cmp.Or(cfg.EditDebounce, 1500*time.Millisecond)
	cfg.SummaryTimeout, cfg.RetryDelay = cmp.Or(cfg.SummaryTimeout, time.Minute), cmp.Or(cfg.RetryDelay, time.Second)
	cfg.Profiles.Location, cfg.Log = cmp.Or(cfg.Profiles.Location, time.Local), cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.BeforeEvict == nil {
		cfg.BeforeEvict = func(string) {}
	}
	if cfg.Rooms == nil {
		cfg.Rooms = offlineRooms{db: cfg.DB}
	}
	cfg.Background, cfg.Waiting = cmp.Or(cfg.Background, idle.New(cfg.IdleAfter, cfg.Now)), cmp.Or(cfg.Waiting, idle.NewPriority())
	cfg.Questions, cfg.Settings = questions.Store{DB: cfg.DB, Memory: cfg.Memory}, settings.Store{DB: cfg.DB}
	cfg.Goals, cfg.Started = goal.NewStore(cfg.DB, cfg.Now), cfg.Now()
	m := &Manager{cfg: cfg, newSessions: make(chan *Session, 16), turns: make(chan struct{}, cfg.Parallel),
		goals: cfg.Goals, sessions: map[history.Timeline]*Session{}}
	m.approvals = approval.Store{DB: cfg.DB, Transport: cfg.Transport, Messages: cfg.Messages, Now: func() time.Time { return m.cfg.Now() }}
	m.subSessions = subsession.New(subsession.Config{DB: cfg.DB, Models: cfg.Models, Prompt: cfg.Prompt, Tools: cfg.Tools,
		History: cfg.History, Settings: m.cfg.Settings, Messages: cfg.Messages, Isolation: cfg.Isolation, Profiles: cfg.Profiles,
		RetryDelay: cfg.RetryDelay, Now: cfg.Now, Log: cfg.Log, Limits: cfg.SubSessions, Waiting: cfg.Waiting, Left: cfg.Rooms.Left}, m)
	m.cfg.Events = map[chat.EventKind]Source{chat.SubSessionResult: m.subSessions, chat.SubSessionFailed: m.subSessions}
	maps.Copy(m.cfg.Events, cfg.Events)
	if m.spawns() {
		m.cfg.Helpers = m.subSessions.Lines
	}
	m.offers = offers(cfg.Tools.Specs(), cfg.Tools.Brief(), m.spawns())
	return m
}

// spawns reports whether sub-sessions are enabled.
func (m *Manager) spawns() bool { return m.cfg.SubSessions.Parallel > 0 }

// Deliver puts in into the mailbox of its conversation and returns at once. A mailbox keeps the
// order; waiting messages of one person are answered together.
func (m *Manager) Deliver(ctx context.Context, in chat.Inbound) error {
	m.mu.Lock()
	if m.stopping {
		m.mu.Unlock()
		return chat.ErrStopping
	}
	talk := history.NewTimeline(chat.HeadOf(in).Room, chat.HeadOf(in).Branch)
	s, known := m.sessions[talk]
	if !known {
		s = newSession(m, talk)
		m.sessions[talk] = s
	}
	m.cfg.Background.Arrived()
	s.mail.Put(in)
	m.mu.Unlock()
	if known {
		return nil
	}
	select {
	case m.newSessions <- s:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run runs a goroutine per conversation until ctx ends. Running turns may then finish within the grace
// period. At the next start the transport delivers messages that are still waiting.
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
		for first := true; ; first = false {
			if err := m.resumeApprovals(ctx, first); err != nil && ctx.Err() == nil {
				m.cfg.Log.Error("open approvals are not looked after", "err", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Minute):
			}
		}
	})
	if m.spawns() {
		rooms.Go(func() error { m.subSessions.Run(ctx); return nil })
	}
	for {
		select {
		case s := <-m.newSessions:
			rooms.Go(func() error { s.Run(ctx, work); return nil })
		case <-ctx.Done():
			return rooms.Wait()
		}
	}
}

// Preview assembles the prompt and tools of the next message in room, or in one of its threads, and changes nothing.
// An unknown room is treated as a new direct chat with the first owner.
func (m *Manager) Preview(ctx context.Context, room string) (prompt.Prompt, []llm.ToolSpec, error) {
	s := newSession(m, history.Timeline(room))
	in, known, err := offlineRooms{db: m.cfg.DB}.lastHead(ctx, s.room)
	if err != nil {
		return prompt.Prompt{}, nil, err
	}
	if !known && len(m.cfg.Owners) > 0 {
		in.Sender = m.cfg.Owners[0]
	}
	in.Private = in.Private || !known
	return s.Preview(ctx, chat.Message{Head: in})
}

// Rooms lists the rooms with messages, the most recent first.
func Rooms(ctx context.Context, db *store.DB) ([]string, error) {
	rooms, err := store.Column[string](ctx, db, `SELECT room FROM session ORDER BY last_message_at DESC, room`)
	return rooms, store.Wrap(err, "session: list rooms")
}

// LastMessageAt returns the time of the last message of a person in room; zero = no message yet.
func LastMessageAt(ctx context.Context, db store.DBTX, room string) (time.Time, error) {
	at, err := store.Value[int64](ctx, db, `SELECT last_message_at FROM session WHERE room = ?`, room)
	if at == 0 {
		return time.Time{}, err
	}
	return time.Unix(at, 0), nil
}

// recordRoom stores the room's last message, and when a direct chat got other readers.
func (m *Manager) recordRoom(ctx context.Context, db store.DBTX, in chat.Head) error {
	_, err := db.ExecContext(ctx, `INSERT INTO session (room, person, private, last_message_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (room) DO UPDATE SET person = excluded.person, private = excluded.private, last_message_at = excluded.last_message_at,
			public_since = iif(private AND NOT excluded.private, excluded.last_message_at, public_since)`,
		in.Room, in.Sender, in.Private, m.cfg.Now().Unix())
	return store.Wrap(err, "session: record room")
}
