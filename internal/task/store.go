package task

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrNotFound is in the error for a task that does not exist in the room that
// was asked for; whether it exists in another one is nobody's business.
var ErrNotFound = errors.New("no such task")

// Store keeps tasks in the database. It is safe for concurrent use, also by
// several processes.
type Store struct {
	// Location is the zone of times that name none; nil = UTC. To be set before use.
	Location *time.Location
	// PerRoom and PerPerson bound the active tasks that the model works on by a
	// schedule. To be set before use; NewStore sets the defaults.
	PerRoom, PerPerson int

	db   *sql.DB
	now  func() time.Time
	wake chan struct{} // holds a token when something has changed that may be due

	bounding sync.Mutex // from counting tasks until one more is stored

	mu   sync.Mutex
	kept map[string]list // by room: the open tasks
	seen seen
}

// list is what List returned, and the Version it holds for.
type list struct {
	version int64
	tasks   []Task
}

// maxKept bounds the kept lists; beyond it they are read anew.
const maxKept = 256

// NewStore returns the tasks in db, which has this package's tables. now tells
// the time; nil means the clock.
func NewStore(db *sql.DB, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{PerRoom: DefaultPerRoom, PerPerson: DefaultPerPerson,
		db: db, now: now, wake: make(chan struct{}, 1), kept: map[string]list{}}
}

const columns = `id, room, user, content, priority, status, schedule, prompt, background, reason, created, updated, completed,
	catch_up, next_due, scheduled, last_run, run_count, failures, last_result`

// Add stores t as a new active task and returns it as stored, with its ID. Room
// and Content are required; a Schedule must come out of Validate. The ID,
// Status, Reason and times of t are not looked at.
func (s *Store) Add(ctx context.Context, t Task) (Task, error) {
	if t.Room == "" {
		return Task{}, errors.New("add task: no room given")
	}
	now := s.now()
	var err error
	if t.Content, err = checkContent(t.Content); err != nil {
		return Task{}, err
	}
	if t.Priority == 0 {
		t.Priority = defaultPriority
	}
	if err := checkPriority(t.Priority); err != nil {
		return Task{}, err
	}
	if t.Prompt, err = checkPrompt(t.Prompt); err != nil {
		return Task{}, err
	}
	if err := checkSchedule(t.Schedule, now); err != nil {
		return Task{}, err
	}
	if t.CatchUp == "" {
		t.CatchUp = CatchOnce
	}
	if err := checkCatchUp(t.CatchUp); err != nil {
		return Task{}, err
	}
	schedule, err := encode(t.Schedule)
	if err != nil {
		return Task{}, err
	}
	s.bounding.Lock()
	defer s.bounding.Unlock()
	if t.Schedule != nil && t.Prompt != "" {
		if err := s.checkBounds(ctx, s.db, t.Room, t.User, ""); err != nil {
			return Task{}, err
		}
	}
	scheduled, due := s.plan(t.Schedule, now)
	for range 5 { // an ID that is taken is as good as impossible; five are
		row := s.db.QueryRowContext(ctx, `
			INSERT INTO task (id, room, user, content, priority, status, schedule, prompt, background, created, updated, catch_up, scheduled, next_due, asked)
			VALUES (?, ?, ?, ?, ?, 'active', ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO NOTHING RETURNING `+columns,
			newID(), t.Room, t.User, t.Content, t.Priority, schedule, t.Prompt, t.Background, now.UnixMilli(), now.UnixMilli(), t.CatchUp, scheduled, due, t.Asked)
		added, err := scan(row)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return Task{}, fmt.Errorf("add task: %w", err)
		}
		s.poke()
		return added, nil
	}
	return Task{}, errors.New("add task: found no free id")
}

// Update changes what p names of an open (active or paused) task and returns the
// task as it is then.
func (s *Store) Update(ctx context.Context, room, id string, p Patch) (Task, error) {
	if p == (Patch{Asked: p.Asked}) {
		return Task{}, errors.New("nothing to update: give content, priority, a schedule, prompt or background")
	}
	if p.ClearSchedule && p.Schedule != nil {
		return Task{}, errors.New("update task: a schedule cannot be set and cleared at once")
	}
	now := s.now()
	var content, prompt, schedule, scheduled, due any // nil leaves the column as it is
	if p.Content != nil {
		text, err := checkContent(*p.Content)
		if err != nil {
			return Task{}, err
		}
		content = text
	}
	if p.Priority != nil {
		if err := checkPriority(*p.Priority); err != nil {
			return Task{}, err
		}
	}
	if p.Prompt != nil {
		text, err := checkPrompt(*p.Prompt)
		if err != nil {
			return Task{}, err
		}
		prompt = text
	}
	if p.Schedule != nil || p.ClearSchedule {
		if err := checkSchedule(p.Schedule, now); err != nil {
			return Task{}, err
		}
		text, err := encode(p.Schedule)
		if err != nil {
			return Task{}, err
		}
		schedule = text
		scheduled, due = s.plan(p.Schedule, now)
	}
	if p.CatchUp != nil {
		if err := checkCatchUp(*p.CatchUp); err != nil {
			return Task{}, err
		}
	}
	s.bounding.Lock()
	defer s.bounding.Unlock()
	if err := s.checkPatch(ctx, room, id, p); err != nil {
		return Task{}, err
	}
	// A new schedule begins anew, with no failures of the old one.
	return s.change(ctx, s.db, now, room, id, "updated", []Status{Active, Paused}, `
		content = coalesce(?1, content), priority = coalesce(?2, priority), prompt = coalesce(?3, prompt),
		background = coalesce(?4, background), catch_up = coalesce(?5, catch_up), schedule = coalesce(?6, schedule),
		scheduled = CASE WHEN ?6 IS NULL THEN scheduled ELSE ?7 END, failures = CASE WHEN ?6 IS NULL THEN failures ELSE 0 END,
		next_due = CASE WHEN ?6 IS NULL THEN next_due WHEN status = 'active' THEN ?8 END, asked = iif(asked = ?9, asked, '')`,
		content, p.Priority, prompt, p.Background, p.CatchUp, schedule, scheduled, due, p.Asked)
}

// Complete marks an open task as done. reason says what was achieved and is
// required.
func (s *Store) Complete(ctx context.Context, room, id, reason string) (Task, error) {
	reason, err := oneLine("reason", reason, maxReason)
	if err != nil {
		return Task{}, err
	}
	if reason == "" {
		return Task{}, fmt.Errorf(`a task is completed with a reason: say in a sentence what was done, for example "The user says the plants are watered"`)
	}
	now := s.now()
	return s.change(ctx, s.db, now, room, id, "completed", []Status{Active, Paused},
		`status = 'completed', reason = ?, completed = ?, next_due = NULL`, reason, now.UnixMilli())
}

// Pause keeps an active task from falling due.
func (s *Store) Pause(ctx context.Context, room, id string) (Task, error) {
	return s.change(ctx, s.db, s.now(), room, id, "paused", []Status{Active}, `status = 'paused', reason = '', next_due = NULL`)
}

// Delete takes a task away. Its row stays, for those who look into the database.
func (s *Store) Delete(ctx context.Context, room, id string) (Task, error) {
	return s.change(ctx, s.db, s.now(), room, id, "deleted", []Status{Active, Paused, Completed}, `status = 'deleted', next_due = NULL`)
}

// change applies set to the task id of room if its status is one of from. Room
// and status are conditions of the one statement that changes it, so no race
// and no forgotten check can touch another room's task.
func (s *Store) change(ctx context.Context, db querier, now time.Time, room, id, done string, from []Status, set string, args ...any) (Task, error) {
	id = bareID(id)
	allowed := make([]string, len(from))
	args = append(args, now.UnixMilli(), id, room)
	for i, status := range from {
		allowed[i] = "?"
		args = append(args, status)
	}
	t, err := scan(db.QueryRowContext(ctx, `UPDATE task SET `+set+`, updated = ? WHERE id = ? AND room = ? AND status IN (`+
		strings.Join(allowed, ", ")+`) RETURNING `+columns, args...))
	switch {
	case err == nil:
		s.poke()
		return t, nil
	case !errors.Is(err, sql.ErrNoRows):
		return Task{}, fmt.Errorf("change task #%s: %w", id, err)
	}
	return Task{}, s.refusal(ctx, db, room, id, done)
}

// refusal says why the task could not be changed.
func (s *Store) refusal(ctx context.Context, db querier, room, id, done string) error {
	t, err := get(ctx, db, room, id)
	switch {
	case err != nil:
		return err
	case t.Status == Completed:
		return fmt.Errorf("task #%s cannot be %s, it is completed already (%s): add a new task instead", id, done, t.Reason)
	}
	return fmt.Errorf("task #%s cannot be %s, it is %s already", id, done, t.Status)
}

// Version is a number that grows with every change of any task, made by whatever
// program. As long as it is the same, so is every List.
//
// It is a row kept by triggers rather than PRAGMA data_version: that one changes
// with every commit to the whole database, so each message stored would look
// like a change of the tasks. The row is read only if something was written to
// the database since it was read last.
func (s *Store) Version(ctx context.Context) (int64, error) {
	s.mu.Lock()
	last := s.seen
	s.mu.Unlock()
	now, err := last.next(ctx, s.db)
	if err != nil {
		return 0, fmt.Errorf("read task version: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = now
	return now.version, nil
}

// List returns the tasks of room in one state, or with status "" the open ones
// (active and paused), ordered by priority, then age, then ID. The caller may
// change the slice, but not a Schedule in it.
func (s *Store) List(ctx context.Context, room string, status Status) ([]Task, error) {
	switch status {
	case "":
		tasks, err := s.Open(ctx, room)
		return slices.Clone(tasks), err
	case All:
		return s.query(ctx, `status <> 'deleted'`, room)
	case Active, Paused, Completed, Deleted:
		return s.query(ctx, `status = ?`, room, status)
	}
	return nil, fmt.Errorf("status %q is not known: use active, paused, completed or all", status)
}

// Open returns the open tasks of room, as List does. As long as nothing changed it is
// the same slice, which must not be changed, and asking costs next to nothing.
func (s *Store) Open(ctx context.Context, room string) ([]Task, error) {
	// Read before the tasks: a change in between makes the list look older than
	// it is, which costs a reading; the other way round it would stay wrong.
	version, err := s.Version(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	kept, ok := s.kept[room]
	s.mu.Unlock()
	if ok && kept.version == version {
		return kept.tasks, nil
	}
	tasks, err := s.query(ctx, `status IN ('active', 'paused')`, room) // as in the index task_open
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= maxKept {
		clear(s.kept)
	}
	s.kept[room] = list{version, tasks}
	return tasks, nil
}

func (s *Store) query(ctx context.Context, where string, args ...any) ([]Task, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT `+columns+` FROM task WHERE room = ? AND `+where+` ORDER BY priority, created, id`, args...)
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	defer rows.Close()
	var tasks []Task
	for rows.Next() {
		t, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("list tasks: %w", err)
		}
		tasks = append(tasks, t)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	return tasks, nil
}

func scan(row interface{ Scan(...any) error }, more ...any) (Task, error) {
	var t Task
	var schedule string
	var created, updated int64
	var completed, due, scheduled, last sql.NullInt64
	err := row.Scan(append([]any{&t.ID, &t.Room, &t.User, &t.Content, &t.Priority, &t.Status, &schedule, &t.Prompt, &t.Background,
		&t.Reason, &created, &updated, &completed, &t.CatchUp, &due, &scheduled, &last, &t.Runs, &t.Failures, &t.LastResult}, more...)...)
	if err != nil {
		return Task{}, err
	}
	t.Created, t.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	t.Completed, t.NextDue, t.Scheduled, t.LastRun = moment64(completed), moment64(due), moment64(scheduled), moment64(last)
	if schedule != "" {
		t.Schedule = &Schedule{}
		if err := json.Unmarshal([]byte(schedule), t.Schedule); err != nil {
			return Task{}, fmt.Errorf("schedule of task #%s: %w", t.ID, err)
		}
	}
	return t, nil
}

// moment64 is a stored time; zero for NULL.
func moment64(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return time.UnixMilli(ms.Int64).UTC()
}

func encode(s *Schedule) (string, error) {
	if s == nil {
		return "", nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("store schedule: %w", err)
	}
	return string(b), nil
}

// The alphabet has no 0, 1, 8, 9: what is left is hard to misread.
var ids = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func newID() string {
	b := make([]byte, 5)
	rand.Read(b) // never fails
	return "task_" + ids.EncodeToString(b)
}
