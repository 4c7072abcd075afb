package task

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"reverie/internal/pace"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// errNotFound means that no task with this ID may be read at the place. It does not tell whether
// the task exists elsewhere.
var errNotFound = errors.New("no such task")

// Store keeps tasks in the database. It is safe for concurrent use, also by
// several processes.
type Store struct {
	cfg  Config
	db   *store.DB
	now  func() time.Time
	wake chan struct{} // holds a token when something may have become due

	limitsMu sync.Mutex // from checking limits until the task is stored
}

// Config configures a Store.
type Config struct {
	Location   *time.Location   // zone of times without one; nil = UTC
	PerPerson  int              // active scheduled tasks with a prompt, over all rooms; 0 = DefaultPerPerson
	RunsPerDay int              // model runs in 24 hours, over all rooms; 0 = DefaultRunsPerDay
	Now        func() time.Time // nil = time.Now
}

// NewStore returns a Store on db, which must have this package's tables.
func NewStore(db *store.DB, c Config) *Store {
	c.Location = cmp.Or(c.Location, time.UTC)
	c.PerPerson, c.RunsPerDay = cmp.Or(c.PerPerson, DefaultPerPerson), cmp.Or(c.RunsPerDay, DefaultRunsPerDay)
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Store{cfg: c, db: db, now: c.Now, wake: make(chan struct{}, 1)}
}

const columns = `id, room, user, content, priority, status, schedule, prompt, background, reason, created, updated, completed,
	catch_up, next_due, scheduled, last_run, run_count, failures, last_result, integrity, readers`

// Add stores t as a new active task. It returns it as stored, with its ID. Room, Content and
// readers are required; a Schedule must come from Validate. Status, Reason and times of t are
// ignored. A t with an ID that exists already is returned as it is.
func (s *Store) Add(ctx context.Context, t Task) (Task, error) {
	if err := t.Label.Readers.Check(); err != nil {
		return Task{}, fmt.Errorf("add task: give a label that says who may read it: %w", err)
	}
	if t.ID != "" { // added before an interruption?
		if known, err := getReadable(ctx, s.db, t.Place(), t.ID); !errors.Is(err, errNotFound) {
			return known, err
		}
	}
	now := s.now()
	t.Priority, t.CatchUp = cmp.Or(t.Priority, defaultPriority), cmp.Or(t.CatchUp, catchOnce)
	if err := normalize(&t); err != nil {
		return Task{}, err
	}
	s.limitsMu.Lock()
	defer s.limitsMu.Unlock()
	if t.Schedule != nil && t.Prompt != "" {
		if err := s.checkLimit(ctx, s.db, t.User, ""); err != nil {
			return Task{}, err
		}
	}
	scheduled, due := s.dueColumns(t.Schedule, now)
	added, err := scan(s.db.QueryRowContext(ctx, `
		INSERT INTO task (id, room, user, content, priority, status, schedule, prompt, background, created, updated,
			catch_up, scheduled, next_due, source_event, integrity, readers)
		VALUES (?, ?, ?, ?, ?, 'active', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING RETURNING `+columns,
		cmp.Or(t.ID, store.NewID("task")), t.Room, t.User, t.Content, t.Priority, encodeSchedule(t.Schedule), t.Prompt, t.Background,
		now.UnixMilli(), now.UnixMilli(), t.CatchUp, scheduled, due, t.SourceEvent, t.Label.Integrity, t.Label.Readers))
	if errors.Is(err, sql.ErrNoRows) { // a deleted or unreadable task has this ID
		err = errors.New("its id is taken")
	}
	if err != nil {
		return Task{}, fmt.Errorf("add task: %w", err)
	}
	pace.Wake(s.wake)
	return added, nil
}

// Update applies p to an open (active or paused) task and returns the result.
func (s *Store) Update(ctx context.Context, at trust.Place, id string, p Patch) (Task, error) {
	if p == (Patch{SourceEvent: p.SourceEvent, Integrity: p.Integrity}) {
		return Task{}, errors.New("nothing to update: give content, priority, a schedule, prompt or background")
	}
	now := s.now()
	return s.editInTx(ctx, func(tx *sql.Tx) (Task, error) {
		t, err := getReadable(ctx, tx, at, store.NormalizeID(id))
		if err != nil {
			return Task{}, err
		}
		wasCounted := t.Schedule != nil && t.Prompt != ""
		p.apply(&t)
		if err := normalize(&t); err != nil {
			return Task{}, err
		}
		if t.Status == Active && !wasCounted && t.Schedule != nil && t.Prompt != "" {
			if err := s.checkLimit(ctx, tx, t.User, t.ID); err != nil {
				return Task{}, err
			}
		}
		set := `content = ?, priority = ?, prompt = ?, background = ?, catch_up = ?, 
			source_event = iif(source_event = ?, source_event, ''), integrity = min(integrity, ?)`
		args := []any{t.Content, t.Priority, t.Prompt, t.Background, t.CatchUp, p.SourceEvent, p.Integrity}
		if p.Schedule != nil || p.ClearSchedule { // a new schedule starts without failures
			scheduled, due := s.dueColumns(t.Schedule, now)
			set += `, schedule = ?, scheduled = ?, next_due = iif(status = 'active', ?, NULL), failures = 0`
			args = append(args, encodeSchedule(t.Schedule), scheduled, due)
		}
		return s.updateRow(ctx, tx, now, at, id, "updated", isOpen, set, args...)
	})
}

// editInTx runs change in a transaction, while no other task is added or edited.
func (s *Store) editInTx(ctx context.Context, change func(*sql.Tx) (Task, error)) (t Task, err error) {
	s.limitsMu.Lock()
	defer s.limitsMu.Unlock()
	err = store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		t, err = change(tx)
		return err
	})
	if err != nil {
		return Task{}, err
	}
	pace.Wake(s.wake)
	return t, nil
}

// Complete marks an open task as done. reason says what was achieved and is required.
func (s *Store) Complete(ctx context.Context, c trust.Caller, id, reason string) (Task, error) {
	reason, err := store.CheckLine("reason", reason, maxReason)
	if err != nil {
		return Task{}, err
	}
	if reason == "" {
		return Task{}, errors.New("a task is completed with a reason: say in a sentence what was done, " +
			`for example "The user says the plants are watered"`)
	}
	now := s.now()
	return s.updateRow(ctx, s.db, now, c.Place, id, "completed", isOpen,
		`status = 'completed', reason = ?, completed = ?, next_due = NULL, integrity = min(integrity, ?)`,
		reason, now.UnixMilli(), c.Integrity)
}

// Pause keeps an active task from falling due.
func (s *Store) Pause(ctx context.Context, at trust.Place, id string) (Task, error) {
	return s.updateRow(ctx, s.db, s.now(), at, id, "paused", isActive, `status = 'paused', reason = '', next_due = NULL`)
}

// Delete marks a task as deleted. Its row stays in the database.
func (s *Store) Delete(ctx context.Context, at trust.Place, id string) (Task, error) {
	return s.updateRow(ctx, s.db, s.now(), at, id, "deleted", isOpen+`, 'completed'`, `status = 'deleted', next_due = NULL`)
}

// Statuses from which a change is allowed, for SQL.
const (
	isActive = `'active'`
	isPaused = `'paused'`
	isOpen   = `'active', 'paused'`
)

// updateRow applies set to the task id. The task must be readable at the place, and its status must
// be in from. Both are conditions of the one UPDATE, so a race cannot bypass them.
func (s *Store) updateRow(ctx context.Context, db store.DBTX, now time.Time, at trust.Place, id, done, from, set string, args ...any,
) (Task, error) {
	id = store.NormalizeID(id)
	args = append(append(args, now.UnixMilli(), id), at.ReadableArgs()...)
	t, err := scan(db.QueryRowContext(ctx, `UPDATE task SET `+set+`, updated = ?
		WHERE id = ? AND `+trust.Readable+` AND status IN (`+from+`) RETURNING `+columns, args...))
	if err == nil {
		pace.Wake(s.wake)
		return t, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return Task{}, fmt.Errorf("change task #%s: %w", id, err)
	}
	switch t, err = getReadable(ctx, db, at, id); {
	case err != nil:
		return Task{}, err
	case t.Status == Completed:
		return Task{}, fmt.Errorf("task #%s cannot be %s, it is completed already (%s): add a new task instead", id, done, t.Reason)
	}
	return Task{}, fmt.Errorf("task #%s cannot be %s, it is %s already", id, done, t.Status)
}

// List returns the tasks in one state that may be read at a place. They are sorted by priority, age
// and ID. Status "" means open (active and paused).
func (s *Store) List(ctx context.Context, at trust.Place, status Status) ([]Task, error) {
	return s.listByStatus(ctx, status, trust.Readable, at.ReadableArgs()...)
}

// InRoom returns the tasks of a room in one state without checking readers; room "" = all rooms,
// room by room. It is for the operator and for background work.
func (s *Store) InRoom(ctx context.Context, room string, status Status) ([]Task, error) {
	return s.listByStatus(ctx, status, `(? = '' OR room = ?)`, room, room)
}

func (s *Store) listByStatus(ctx context.Context, status Status, where string, args ...any) ([]Task, error) {
	in := `status = '` + string(status) + `'`
	switch status {
	case "":
		in = `status IN ('active', 'paused')` // must match the index task_open
	case All:
		in = `status <> 'deleted'`
	case Active, Paused, Completed, Deleted:
	default:
		return nil, fmt.Errorf("status %q is not known: use active, paused, completed or all", status)
	}
	tasks, err := queryTasks(ctx, s.db, `FROM task WHERE `+where+` AND `+in+` ORDER BY room, priority, created, id`, args...)
	return tasks, store.Wrap(err, "list tasks")
}

// queryTasks returns the tasks of a query that begins with FROM.
func queryTasks(ctx context.Context, db store.DBTX, from string, args ...any) ([]Task, error) {
	return store.List(ctx, db, func(row store.Row) (Task, error) { return scan(row) }, `SELECT `+columns+` `+from, args...)
}

// Get returns a task that is not deleted and may be read at a place.
func (s *Store) Get(ctx context.Context, at trust.Place, id string) (Task, error) {
	return getReadable(ctx, s.db, at, store.NormalizeID(id))
}

func getReadable(ctx context.Context, db store.DBTX, at trust.Place, id string) (Task, error) {
	return findTask(ctx, db, id, " in this room: list the tasks to see their ids", ` AND `+trust.Readable, at.ReadableArgs()...)
}

// Find returns the task id of any room; it is for the operator.
func (s *Store) Find(ctx context.Context, id string) (Task, error) {
	return findTask(ctx, s.db, store.NormalizeID(id), ": `bot task list --all` shows them", ``)
}

// findTask returns the task id that is not deleted and matches where; hint ends the error otherwise.
func findTask(ctx context.Context, db store.DBTX, id, hint, where string, args ...any) (Task, error) {
	t, err := scan(db.QueryRowContext(ctx, `SELECT `+columns+` FROM task WHERE id = ? AND status <> 'deleted'`+where,
		append([]any{id}, args...)...))
	if errors.Is(err, sql.ErrNoRows) {
		return Task{}, fmt.Errorf("no task #%s%s (%w)", id, hint, errNotFound)
	}
	return t, store.Wrap(err, "find task #%s", id)
}

func scan(row store.Row, more ...any) (Task, error) {
	var t Task
	var schedule string
	var created, updated int64
	var completed, due, scheduled, last sql.NullInt64
	err := row.Scan(append([]any{&t.ID, &t.Room, &t.User, &t.Content, &t.Priority, &t.Status, &schedule, &t.Prompt, &t.Background,
		&t.Reason, &created, &updated, &completed, &t.CatchUp, &due, &scheduled, &last, &t.Runs, &t.Failures, &t.LastResult,
		&t.Label.Integrity, &t.Label.Readers}, more...)...)
	if err != nil {
		return Task{}, err
	}
	t.Created, t.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	t.Completed, t.NextDue, t.Scheduled, t.LastRun = nullTime(completed), nullTime(due), nullTime(scheduled), nullTime(last)
	if schedule != "" {
		t.Schedule = &Schedule{}
		if err := json.Unmarshal([]byte(schedule), t.Schedule); err != nil {
			return Task{}, fmt.Errorf("schedule of task #%s: %w", t.ID, err)
		}
	}
	return t, nil
}

// nullTime converts Unix milliseconds; zero for NULL.
func nullTime(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return time.UnixMilli(ms.Int64).UTC()
}

func encodeSchedule(s *Schedule) string {
	if s == nil {
		return ""
	}
	b, _ := json.Marshal(s) // cannot fail
	return string(b)
}

// Runs lists the last n runs of a room or one task, latest first; empty means all. It is for the operator.
func (s *Store) Runs(ctx context.Context, room, id string, n int) ([]Run, error) {
	return s.runs(ctx, `(?1 = '' OR t.room = ?1) AND (?2 = '' OR t.id = ?2) AND t.status <> 'deleted'
		ORDER BY r.due DESC, t.id LIMIT ?3`, room, store.NormalizeID(id), n)
}

// fillerWords say nothing about how a task was completed.
var fillerWords = strings.Fields("the this that task is was has been it successfully done complete completed finished ok yes")

// CheckReason returns an error if reason has no word beyond content and fillers. It asks for evidence.
func CheckReason(reason, content string) error {
	allowed := append(words(content), fillerWords...)
	if slices.ContainsFunc(words(reason), func(w string) bool { return !slices.Contains(allowed, w) }) {
		return nil
	}
	return errors.New("the reason says no more than that it is done: give what shows it, in a sentence, " +
		`for example "Anna wrote that the plants are watered"`)
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
	})
}

// redactedText replaces content and reason of a task whose message was redacted.
const redactedText = "[taken back]"

// openFromMessages selects the open tasks of room ?1 made for one of the messages ?2.
const openFromMessages = `room = ?1 AND source_event <> '' AND source_event IN (SELECT value FROM json_each(?2))
	AND status IN ('active', 'paused')`

// FromMessages counts the tasks made for one of events. It counts those that may be read at the
// place. It counts open ones and those that DeleteFromMessages deleted, and returns the content of
// all open ones.
func (s *Store) FromMessages(ctx context.Context, at trust.Place, events []string) (n int, words []string, err error) {
	err = store.Each(ctx, s.db, func(row store.Row) error {
		var content string
		var readers trust.Readers
		err := row.Scan(&content, &readers)
		if err == nil && at.MayRead(readers) {
			n++
		}
		if content != "" {
			words = append(words, content)
		}
		return err
	}, `SELECT iif(status = 'deleted', '', content), readers FROM task WHERE `+openFromMessages+`
		OR room = ?1 AND source_event <> '' AND source_event IN (SELECT value FROM json_each(?2)) AND status = 'deleted' AND reason = ?3`,
		at.Room, store.Array(events), redactedText)
	return n, words, store.Wrap(err, "tasks of a message")
}

// DeleteFromMessages deletes the open tasks of room made for one of events. It clears their texts.
// Readers are not checked: nothing of a redacted message stays. It is idempotent.
func (s *Store) DeleteFromMessages(ctx context.Context, room string, events []string) error {
	if _, err := s.db.ExecContext(ctx, `UPDATE task SET status = 'deleted', reason = ?3, content = ?3,
		prompt = '', last_result = '', next_due = NULL, updated = ?4 WHERE `+openFromMessages,
		room, store.Array(events), redactedText, s.now().UnixMilli()); err != nil {
		return fmt.Errorf("delete tasks of a redacted message: %w", err)
	}
	pace.Wake(s.wake)
	return nil
}
