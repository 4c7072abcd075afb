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

	"reverie/internal/dream/report"
	"reverie/internal/harvest"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
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
	taskTokens    = 4000                // approximate size of one request
	taskRest      = 30 * 24 * time.Hour // before the same change of a task is repeated
	maxProposals  = 10                  // in one night
)

// taskRoom holds the open tasks of one room and readers. It also holds the messages since the
// oldest task.
type taskRoom struct {
	id        string
	scope     memory.Scope // their readers
	asked     int64        // time of the last request about them, in milliseconds
	tasks     []*openTask
	witnesses []witness // the oldest first
}

// openTask is an active task with its signature.
type openTask struct {
	task.Task
	said signature
	gone bool // the plan has a step for it
}

// plain reports whether t has no schedule and no prompt.
func (t *openTask) plain() bool { return t.Schedule == nil && t.Prompt == "" }

// witness is a message or entry that may show that a task is done.
type witness struct {
	memory string // ID of the entry; "" = a message
	who    string
	at     time.Time
	text   string // without quoted words of others
}

// name identifies w in reports without its text, which may be redacted later.
func (w witness) name(zone *time.Location) i18n.Text {
	if w.memory != "" {
		return i18n.New("why.by_memory", "id", w.memory)
	}
	at := w.at.In(zone)
	return i18n.New("why.by_words", "who", w.who, "date", at.Format(time.DateOnly), "time", at.Format("15:04"))
}

// plannedTask is a step with its line of the report.
type plannedTask struct {
	task.TidyStep
	change report.TaskChange
}

// roomPlan holds the steps and proposals for the tasks of one room.
type roomPlan struct {
	*taskRoom
	now       time.Time
	zone      *time.Location
	before    chores
	steps     []plannedTask
	proposals []report.Proposal
}

// planTasks plans changes of tasks and proposes others. It only writes which requests were made.
func (r *run) planTasks(ctx context.Context) (steps []plannedTask, err error) {
	if r.d.cfg.Tasks == nil || !r.has(Tasks) {
		return nil, nil
	}
	before, err := r.d.chores(ctx)
	if err != nil {
		return nil, err
	}
	rooms, err := r.taskRooms(ctx)
	if err != nil {
		return nil, fmt.Errorf("dream: the tasks: %w", err)
	}
	var proposals []report.Proposal
	asked := 0
	for _, room := range rooms {
		p := &roomPlan{taskRoom: room, now: r.now, zone: r.d.cfg.Location, before: before}
		p.sameTasks()
		if r.d.cfg.Ask != nil && !r.silent && asked < taskRooms {
			var did bool
			did, err = r.askTasks(ctx, p)
			asked += flag(did)
		}
		if err != nil {
			return nil, err
		}
		steps, proposals = append(steps, p.steps...), append(proposals, p.proposals...)
	}
	r.report.Proposals = before.newProposals(proposals)
	return steps, ctx.Err()
}

// taskRooms reads the settled active tasks by room and readers, the longest unasked first.
func (r *run) taskRooms(ctx context.Context) ([]*taskRoom, error) {
	all, err := r.d.cfg.Tasks.InRoom(ctx, "", task.Active)
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
			rooms = append(rooms, &taskRoom{id: t.Room, scope: t.Label.Readers})
		}
		rooms[i].tasks = append(rooms[i].tasks, &openTask{Task: t, said: names.signatureOf(memory.Entry{Text: asTask(t.Content)})})
	}
	for _, room := range rooms {
		if err := r.d.readRoom(ctx, room); err != nil {
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

// readRoom reads the messages and entries since the oldest task of r. It reads only those that the
// readers of r may read.
func (d *Dreamer) readRoom(ctx context.Context, r *taskRoom) error {
	oldest := slices.MinFunc(r.tasks, func(a, b *openTask) int { return a.Created.Compare(b.Created) }).Created
	said := history.Filter{Rooms: []history.Timeline{history.Timeline(r.id)}, Readers: []trust.Readers{r.scope}, People: true,
		Since: oldest.Add(time.Millisecond), Newest: true, Limit: taskWitnesses}
	err := history.Each(ctx, d.cfg.DB, said, func(m history.Message) error {
		if d.cfg.Trusted != nil && !d.cfg.Trusted(m.Sender) {
			return nil
		}
		if m.Text = harvest.OwnWords(m.Text); m.Text != "" && !history.IsRedacted(m) {
			r.witnesses = append(r.witnesses, witness{who: m.Sender, at: m.At, text: m.Text})
		}
		return nil
	})
	if err != nil {
		return err
	}
	readers := memory.Access{Actor: everything.Actor, Scopes: []memory.Scope{r.scope}}
	known, err := d.cfg.Store.List(ctx, readers, memory.Filter{Members: true})
	if err == nil {
		err = d.cfg.Store.LoadOriginalSources(ctx, known) // to exclude the text of models
	}
	if err != nil {
		return err
	}
	for _, e := range known {
		if e.Conversation == "" && e.ObservedAt.After(oldest) && e.Source != memory.DreamingMerge && e.Integrity >= trust.User {
			r.witnesses = append(r.witnesses, witness{memory: e.ID, at: e.ObservedAt, text: e.Text})
		}
	}
	slices.SortStableFunc(r.witnesses, func(a, b witness) int { return a.at.Compare(b.at) })
	if more := len(r.witnesses) - taskWitnesses; more > 0 {
		r.witnesses = r.witnesses[more:]
	}
	return nil
}

// sameTasks merges tasks of the same words without a model.
func (p *roomPlan) sameTasks() {
	for i, a := range p.tasks {
		for _, b := range p.tasks[:i] {
			if a.said.plain == b.said.plain && p.mergeTasks(a, b) {
				break
			}
		}
	}
}

// askTasks asks a model about the tasks of p and plans the answer. It does neither if the request
// was made before.
func (r *run) askTasks(ctx context.Context, p *roomPlan) (asked bool, err error) {
	model := r.d.cfg.Model()
	nonce := strings.ToLower(rand.Text()[:8])
	shown := p.tasks[:min(len(p.tasks), taskMost)]
	content, witnesses := p.lines(shown, nonce)
	salt, err := memory.Salt(ctx, r.d.cfg.DB)
	if err != nil {
		return false, fmt.Errorf("dream: %w", err)
	}
	seen := hashed(salt, model+"\x00"+strings.ReplaceAll(content, nonce, ""))
	known, err := store.Value[bool](ctx, r.d.cfg.DB, `SELECT seen = ? FROM dream_task_list
		WHERE room = ? AND readers = ?`, seen, p.id, p.scope)
	if err != nil || known {
		return false, store.Wrap(err, "dream")
	}
	form := taskForm.Load(r.d.cfg.Prompts, r.d.cfg.Default, r.d.cfg.Log)
	form = strings.NewReplacer("{nonce}", nonce, "{count}", strconv.Itoa(len(shown))).Replace(form)
	prompt := template.Fill(form, "{content}", content)
	answer, ok := r.send(ctx, prompt)
	if !ok {
		return true, ctx.Err()
	}
	actions, err := readActions(answer)
	if r.countAnswer(err == nil); err != nil {
		r.note("what the model said about the tasks of a room could not be read, so they stay as they are: %v", err)
	} else {
		refused := p.decide(shown, witnesses, actions)
		if refused > 0 {
			r.note("%d of what the model would do to tasks was left out: nothing bears it out, or it is too much for one night", refused)
		}
	}
	if r.o.DryRun { // the next dream asks again
		return true, nil
	}
	_, err = r.d.cfg.DB.ExecContext(ctx, `INSERT INTO dream_task_list (room, readers, model, seen, at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (room, readers) DO UPDATE SET model = excluded.model, seen = excluded.seen, at = excluded.at`,
		p.id, p.scope, model, seen, r.now.UnixMilli())
	return true, store.Wrap(err, "dream")
}

// lines lists the tasks and, within taskTokens, the newest witnesses with their numbers.
func (p *roomPlan) lines(shown []*openTask, nonce string) (string, []witness) {
	var b strings.Builder
	b.WriteString("Tasks:\n")
	for _, t := range shown {
		how := ""
		if !t.plain() {
			how = ", scheduled"
		}
		fmt.Fprintf(&b, "%s (priority %d, since %s%s): <data %s>%s</data %s>\n",
			t.ID, t.Priority, t.Created.In(p.zone).Format(time.DateOnly), how, nonce, t.Content, nonce)
	}
	room := taskTokens - llm.EstimateTokens(b.String())
	from := len(p.witnesses)
	lines := make([]string, len(p.witnesses))
	for i, w := range slices.Backward(p.witnesses) {
		who := harvest.ShortName(w.who)
		if w.memory != "" {
			who = "noted"
		}
		lines[i] = fmt.Sprintf("%s %s: <data %s>%s</data %s>\n", w.at.In(p.zone).Format("2006-01-02 15:04"), who,
			nonce, strings.ReplaceAll(strings.TrimSpace(w.text), "\n", "\n    "), nonce)
		if room -= llm.EstimateTokens(lines[i]); room < 0 {
			break
		}
		from = i
	}
	b.WriteString("\nSaid since:\n")
	for i, line := range lines[from:] {
		fmt.Fprintf(&b, "[%d] %s", i+1, line)
	}
	if from == len(lines) {
		b.WriteString("(nothing)\n")
	}
	return strings.TrimRight(b.String(), "\n"), p.witnesses[from:]
}

// taskAction is a suggestion of a model.
type taskAction struct {
	task, action, quote, into string
	message                   int // number of the witness; 0 = none
}

// readActions parses a model's answer. It rejects a truncated one.
func readActions(said string) ([]taskAction, error) {
	list, err := answer.LastObjects(said)
	actions := make([]taskAction, len(list))
	for i, o := range list {
		actions[i] = taskAction{task: taskID(answer.Text(o, "task")), action: strings.ToLower(answer.Text(o, "action")),
			quote: answer.Text(o, "quote"), into: taskID(answer.Text(o, "into")), message: answer.Int(o, "message")}
	}
	return actions, err
}
