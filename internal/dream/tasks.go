package dream

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/dream/report"
	"reverie/internal/harvest"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm/answer"
	"reverie/internal/llm/template"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// Tasks are tidied like memories. Changes that the tasks and their dates prove are made; other
// suggestions of a model are proposed to people (tasks_check.go).

const (
	taskRooms     = 10                  // rooms in one night, the longest unasked first
	taskMost      = 60                  // tasks in one request
	taskWitnesses = 40                  // messages and memories in one request, the newest
	maxWitness    = 400                 // characters shown of one
	taskRest      = 30 * 24 * time.Hour // before the same change of a task is repeated
	maxProposals  = 10                  // in one night
)

// taskRoom holds the open tasks of one room and readers, the messages since the oldest task, and what is
// planned for them.
type taskRoom struct {
	r         *run
	id        string
	scope     memory.Scope // their readers
	asked     int64        // time of the last request about them, in milliseconds
	tasks     []*openTask
	witnesses []witness          // the oldest first
	past      map[[3]string]bool // see pastChores

	steps     []plannedTask
	proposals []report.Proposal
}

type openTask struct {
	task.Task
	said signature
	gone bool // the plan has a step for it
}

func (t *openTask) plain() bool { return t.Schedule == nil && t.Prompt == "" }

// witness is a message or entry that may show that a task is done.
type witness struct {
	who  string    // for the model
	name i18n.Text // for reports; without its text, which may be redacted later
	at   time.Time
	text string // without quoted words of others
}

// plannedTask is a step with its line of the report.
type plannedTask struct {
	task.TidyStep
	change report.TaskChange
}

// planTasks plans changes of tasks and proposes others. It only writes which requests were made.
func (r *run) planTasks(ctx context.Context) (steps []plannedTask, err error) {
	if r.d.cfg.Tasks == nil || !r.has(Tasks) {
		return nil, nil
	}
	rooms, err := r.taskRooms(ctx)
	if err != nil {
		return nil, fmt.Errorf("dream: the tasks: %w", err)
	}
	var proposals []report.Proposal
	asked := 0
	for _, p := range rooms {
		p.sameTasks()
		if r.d.cfg.Ask != nil && !r.silent && asked < taskRooms {
			did, err := p.ask(ctx)
			if err != nil {
				return nil, err
			}
			asked += flag(did)
		}
		steps, proposals = append(steps, p.steps...), append(proposals, p.proposals...)
	}
	r.report.Proposals = proposals[:min(len(proposals), maxProposals)]
	return steps, ctx.Err()
}

// taskRooms reads the settled active tasks by room and readers, the longest unasked first.
func (r *run) taskRooms(ctx context.Context) ([]*taskRoom, error) {
	all, err := r.d.cfg.Tasks.InRoom(ctx, "", task.Active)
	if err != nil {
		return nil, err
	}
	past, err := r.d.pastChores(ctx, r.now.Add(-taskRest))
	if err != nil {
		return nil, err
	}
	names := newNamer()
	var rooms []*taskRoom
	for _, t := range all {
		if !r.o.Now && r.now.Sub(t.Updated) < settled {
			continue
		}
		i := slices.IndexFunc(rooms, func(r *taskRoom) bool { return r.id == t.Room && r.scope == t.Label.Readers })
		if i < 0 {
			i = len(rooms)
			rooms = append(rooms, &taskRoom{r: r, id: t.Room, scope: t.Label.Readers, past: past})
		}
		rooms[i].tasks = append(rooms[i].tasks, &openTask{Task: t, said: names.signatureOf(memory.Entry{Text: asTask(t.Content)})})
	}
	for _, room := range rooms {
		if err := room.readWitnesses(ctx); err != nil {
			return nil, err
		}
		room.asked, err = store.Value[int64](ctx, r.d.cfg.DB, `SELECT at FROM dream_task_list WHERE room = ? AND readers = ?`,
			room.id, room.scope)
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(rooms, func(a, b *taskRoom) int { return cmp.Compare(a.asked, b.asked) })
	return rooms, nil
}

// readWitnesses reads the messages and entries since the oldest task. It reads only those that the
// readers of the tasks may read.
func (p *taskRoom) readWitnesses(ctx context.Context) error {
	cfg := p.r.d.cfg
	oldest := slices.MinFunc(p.tasks, func(a, b *openTask) int { return a.Created.Compare(b.Created) }).Created
	said := history.Filter{Rooms: []history.Timeline{history.Timeline(p.id)}, Readers: []trust.Readers{p.scope}, People: true,
		Since: oldest.Add(time.Millisecond), Newest: true, Limit: taskWitnesses}
	err := history.Each(ctx, cfg.DB, said, func(m history.Message) error {
		if cfg.Trusted != nil && !cfg.Trusted(m.Sender) {
			return nil
		}
		if m.Text = harvest.OwnWords(m.Text); m.Text != "" && !history.IsRedacted(m) {
			at := m.At.In(cfg.Location)
			p.witnesses = append(p.witnesses, witness{chat.ShortName(m.Sender), i18n.New("why.by_words", "who", m.Sender,
				"date", at.Format(time.DateOnly), "time", at.Format("15:04")), m.At, m.Text})
		}
		return nil
	})
	if err != nil {
		return err
	}
	readers := memory.Access{Actor: everything.Actor, Scopes: []memory.Scope{p.scope}}
	known, err := cfg.Store.List(ctx, readers, memory.Filter{Members: true})
	if err == nil {
		err = cfg.Store.LoadOriginalSources(ctx, known) // to exclude the text of models
	}
	for _, e := range known {
		if e.Conversation == "" && e.ObservedAt.After(oldest) && e.Source != memory.DreamingMerge && e.Integrity >= trust.User {
			p.witnesses = append(p.witnesses, witness{"noted", i18n.New("why.by_memory", "id", e.ID), e.ObservedAt, e.Text})
		}
	}
	slices.SortStableFunc(p.witnesses, func(a, b witness) int { return a.at.Compare(b.at) })
	p.witnesses = p.witnesses[max(0, len(p.witnesses)-taskWitnesses):]
	return err
}

// ask asks a model about the tasks and plans the answer. It does neither if the request was made before.
func (p *taskRoom) ask(ctx context.Context) (asked bool, err error) {
	r, cfg := p.r, p.r.d.cfg
	model, nonce := cfg.Model(), strings.ToLower(rand.Text()[:8])
	shown := p.tasks[:min(len(p.tasks), taskMost)]
	content := p.lines(shown, nonce)
	salt, err := memory.Salt(ctx, cfg.DB)
	if err != nil {
		return false, fmt.Errorf("dream: %w", err)
	}
	seen := hashed(salt, model+"\x00"+strings.ReplaceAll(content, nonce, ""))
	known, err := store.Value[bool](ctx, cfg.DB, `SELECT seen = ? FROM dream_task_list
		WHERE room = ? AND readers = ?`, seen, p.id, p.scope)
	if err != nil || known {
		return false, store.Wrap(err, "dream")
	}
	form := taskForm.Load(cfg.Prompts, cfg.Default, cfg.Log)
	form = strings.NewReplacer("{nonce}", nonce, "{count}", strconv.Itoa(len(shown))).Replace(form)
	said, ok := r.send(ctx, template.Fill(form, "{content}", content))
	if !ok {
		return true, ctx.Err()
	}
	suggestions, err := answer.LastObjects(said)
	if r.countAnswer(err == nil); err != nil {
		r.note("what the model said about the tasks of a room could not be read, so they stay as they are: %v", err)
	} else if refused := p.decide(shown, suggestions); refused > 0 {
		r.note("%d of what the model would do to tasks was left out: nothing bears it out, or it is too much for one night", refused)
	}
	if r.o.DryRun { // the next dream asks again
		return true, nil
	}
	_, err = cfg.DB.ExecContext(ctx, `INSERT INTO dream_task_list (room, readers, model, seen, at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (room, readers) DO UPDATE SET model = excluded.model, seen = excluded.seen, at = excluded.at`,
		p.id, p.scope, model, seen, r.now.UnixMilli())
	return true, store.Wrap(err, "dream")
}

// lines lists the tasks and the witnesses, which are numbered from 1.
func (p *taskRoom) lines(shown []*openTask, nonce string) string {
	zone := p.r.d.cfg.Location
	var b strings.Builder
	b.WriteString("Tasks:\n")
	for _, t := range shown {
		how := ""
		if !t.plain() {
			how = ", scheduled"
		}
		fmt.Fprintf(&b, "%s (priority %d, since %s%s): <data %s>%s</data %s>\n",
			t.ID, t.Priority, t.Created.In(zone).Format(time.DateOnly), how, nonce, t.Content, nonce)
	}
	b.WriteString("\nSaid since:")
	for i, w := range p.witnesses {
		fmt.Fprintf(&b, "\n[%d] %s %s: <data %s>%s</data %s>", i+1, w.at.In(zone).Format("2006-01-02 15:04"), w.who,
			nonce, history.OneLine(w.text, maxWitness), nonce)
	}
	if len(p.witnesses) == 0 {
		b.WriteString("\n(nothing)")
	}
	return b.String()
}
