package session

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/skill"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// command is one word people can say with a "!" or a "/" before it. It answers with
// Markdown, and help.NAME of data/messages says what it is for; commands never call the model, but for !retry.
type command struct {
	name string
	run  func(s *Session, ctx context.Context, in chat.Inbound, args string) (string, error)
}

// commands lists what the bot understands, in the order !help shows it.
func commands() []command {
	return []command{
		{"help", (*Session).help},
		{"new", (*Session).startNew},
		{"retry", nil}, // handled by command: it answers through the model
		{"stop", (*Session).stop},
		{"compact", (*Session).compactNow},
		{"approve", (*Session).approve},
		{"deny", (*Session).deny},
		{"summary", (*Session).showSummary},
		{"status", (*Session).status},
		{"tasks", (*Session).listTasks},
		{"helpers", (*Session).listHelpers},
		{"goal", (*Session).goal},
		{"memory", (*Session).memories},
		{"remember", (*Session).rememberThis},
		{"forget", (*Session).forgetThis},
		{"undo", (*Session).undoThis},
		{"dream", (*Session).dream},
		{"think", (*Session).think},
		{"mode", (*Session).changeMode},
		{"model", (*Session).model},
		{"skills", (*Session).skills},
		{"config", (*Session).config},
		{"prompt", (*Session).promptReport},
		{"verify", (*Session).verify},
		{"whoami", (*Session).whoami},
	}
}

var commandForm = regexp.MustCompile(`(?s)^([!/])([A-Za-z]+)(?:\s+(.*))?$`)

// parseCommand recognises "!name arguments", and with a "/" the names of commands: Matrix clients
// keep most of what begins with "/" for themselves.
func parseCommand(text string) (name, args string, ok bool) {
	m := commandForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", "", false
	}
	name = strings.ToLower(m[2])
	if _, known := commandNamed(name); m[1] == "/" && !known {
		return "", "", false
	}
	return name, strings.TrimSpace(m[3]), true
}

// commandNamed is the command name.
func commandNamed(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

// alone reports whether in is answered by itself: a command, or a system event.
func alone(in chat.Inbound) bool {
	_, _, command := parseCommand(in.Text)
	return command || in.Event != "" || in.Change != ""
}

func (s *Session) command(ctx context.Context, in chat.Inbound, name, args string) error {
	c, known := commandNamed(name)
	switch {
	case !known:
		return s.notice(ctx, in, s.unknownCommand(ctx, name))
	case name == "retry":
		return s.retry(ctx, in)
	}
	text, err := c.run(s, ctx, in, args)
	if why := s.refused(ctx, err); why != "" {
		text, err = why, nil
	}
	if err != nil {
		return err
	}
	return s.notice(ctx, in, text)
}

func (s *Session) unknownCommand(ctx context.Context, name string) string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return i18n.Sentences(s.text(ctx, "command.unknown", "name", asWord("!"+name)), s.nearestLine(ctx, name, names, "!"), s.text(ctx, "command.list"))
}

// help is !help: all commands, or the one that args names.
func (s *Session) help(ctx context.Context, _ chat.Inbound, args string) (string, error) {
	if name := strings.ToLower(strings.TrimLeft(args, "!/")); name != "" {
		if _, known := commandNamed(name); !known {
			return s.unknownCommand(ctx, name), nil
		}
		return fmt.Sprintf("`!%s`: %s", name, s.text(ctx, "help."+name)), nil
	}
	var b strings.Builder
	b.WriteString(s.text(ctx, "help") + "\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "- `!%s`: %s\n", c.name, s.text(ctx, "help."+c.name))
	}
	return strings.TrimSpace(b.String()), nil
}

func (s *Session) startNew(ctx context.Context, _ chat.Inbound, _ string) (string, error) {
	return s.text(ctx, "new"), s.beginNew(ctx)
}

// beginNew begins a new conversation, without a summary.
func (s *Session) beginNew(ctx context.Context) error {
	s.recallable(ctx)
	s.leaving()
	if err := s.pin(ctx, ""); err != nil {
		return err
	}
	_, err := s.cfg.History.StartNew(ctx, s.talk)
	return err
}

// retry answers the last message of a person anew. What the model had said or
// done since is set aside, not deleted.
func (s *Session) retry(ctx context.Context, in chat.Inbound) error {
	clear(s.paces) // a person asks
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(past) {
		if m.EventID == replyID(in.ID) { // answered before an interruption
			if err := s.catchUp(ctx, in); err != nil {
				return err
			}
			if err := s.say(ctx, in, m.Text); err != nil {
				return err
			}
			return s.askGathered(ctx, in.ID)
		}
		if m.Role != llm.User || m.Sender == "" || history.TakenBack(m) { // nobody wrote a system event
			continue
		}
		if err := s.cfg.History.Retire(ctx, s.talk, m.ID); err != nil {
			return err
		}
		return s.respond(ctx, in)
	}
	return s.notice(ctx, in, s.text(ctx, "retry.nothing"))
}

func (s *Session) status(ctx context.Context, in chat.Inbound, _ string) (string, error) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return "", err
	}
	entries, err := s.cfg.Memory.Entries(ctx, s.scopes(in)...)
	if err != nil {
		return "", err
	}
	tasks, err := s.cfg.Tasks.List(ctx, s.place(in), "")
	if err != nil {
		return "", err
	}
	now, err := s.mode(ctx)
	if err != nil {
		return "", err
	}
	window, out := s.cfg.Models.Window(now.Role)
	say := s.cfg.Messages.For(ctx, s.room)
	lines := []string{
		s.text(ctx, "status.awake", "time", i18n.Span(s.cfg.Now().Sub(s.began).Round(time.Second)).In(say)),
		s.modeLine(ctx, now),
		s.text(ctx, "status.models", "role", now.Mode.RoleName(), "models", strings.Join(s.cfg.Models.Role(now.Role), ", "), "window", fmt.Sprint(window), "answer", fmt.Sprint(out)),
		s.text(ctx, "status.talk", "messages", s.text(ctx, "status.messages", "count", fmt.Sprint(len(past))),
			"memories", s.text(ctx, "status.memories", "count", fmt.Sprint(len(entries))), "tasks", s.text(ctx, "status.tasks", "count", fmt.Sprint(len(tasks)))),
	}
	tier, err := s.tierLine(ctx, past)
	if err != nil {
		return "", err
	}
	lines = append(lines, tier)
	if last := s.usageLine(ctx); last != "" {
		lines = append(lines, last)
	}
	if s.cfg.Status != nil {
		lines = append(lines, s.cfg.Status(ctx, say)...)
	}
	return "- " + strings.Join(lines, "\n- "), nil
}

func (s *Session) promptReport(ctx context.Context, in chat.Inbound, _ string) (string, error) {
	p, err := s.preview(ctx, in)
	if err != nil {
		return "", err
	}
	return s.promptWords(ctx, p.Report), nil
}

// preview is the prompt that in would get now.
func (s *Session) preview(ctx context.Context, in chat.Inbound) (prompt.Prompt, error) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return prompt.Prompt{}, err
	}
	how, err := s.manner(ctx, s.place(in), past, true)
	if err != nil {
		return prompt.Prompt{}, err
	}
	t := s.promptTurn(in, past, how)
	t.Preview = true
	return s.cfg.Prompt.Assemble(ctx, t)
}

func (s *Session) verify(ctx context.Context, in chat.Inbound, args string) (string, error) {
	if s.cfg.Verify == nil {
		return s.text(ctx, "verify.nobody"), nil
	}
	return s.cfg.Verify(ctx, in.Sender, in.Room, args)
}

func (s *Session) whoami(ctx context.Context, in chat.Inbound, _ string) (string, error) {
	role, where := "whoami.allowed", "whoami.room"
	if s.level(in) == trust.Owner {
		role = "whoami.owner"
	}
	if in.Private {
		where = "whoami.direct"
	}
	files := make([]string, 0, 2)
	for _, scope := range s.scopes(in) {
		files = append(files, "`"+s.cfg.Memory.File(scope)+"`")
	}
	return fmt.Sprintf("%s %s (%s)", s.text(ctx, role, "person", in.Sender), s.text(ctx, where), strings.Join(files, ", ")), nil
}

// listTasks is the command !tasks.
func (s *Session) listTasks(ctx context.Context, in chat.Inbound, _ string) (string, error) {
	tasks, err := s.cfg.Tasks.List(ctx, s.place(in), "")
	if err != nil {
		return "", err
	}
	if len(tasks) == 0 {
		return s.text(ctx, "tasks.none"), nil
	}
	var b strings.Builder
	say := s.cfg.Messages.For(ctx, s.room)
	for _, t := range tasks {
		line := t.Line(say)
		if !t.NextDue.IsZero() {
			line = say("tasks.next", "task", line, "at", s.cfg.Tasks.When(say, t, t.NextDue))
		}
		b.WriteString("- " + line + "\n")
	}
	return b.String(), nil
}

// listHelpers is the command !helpers.
func (s *Session) listHelpers(ctx context.Context, in chat.Inbound, _ string) (string, error) {
	if s.helpers == nil {
		return s.text(ctx, "helpers.off"), nil
	}
	lines, err := s.helpers.Lines(ctx, s.place(in), s.cfg.Messages.For(ctx, s.room))
	if err != nil {
		return "", err
	}
	if len(lines) == 0 {
		return s.text(ctx, "helpers.none"), nil
	}
	return "- " + strings.Join(lines, "\n- ") + "\n\n" + s.text(ctx, "helpers.stop"), nil
}

// promptWords is !prompt: what the next request is made of, in numbers, in the language of the room.
// The rest, and what stands in files, is for the operator: `bot prompt`.
func (s *Session) promptWords(ctx context.Context, r prompt.Report) string {
	window := s.text(ctx, "prompt.window_unknown")
	if r.Window > 0 {
		window = s.text(ctx, "prompt.window", "window", fmt.Sprint(r.Window), "answer", fmt.Sprint(r.MaxOutput))
	}
	total := s.text(ctx, "prompt.total", "total", fmt.Sprint(r.Total))
	if n := r.Counted(); n != r.Total {
		total = s.text(ctx, "prompt.total_counted", "total", fmt.Sprint(r.Total), "counted", fmt.Sprint(n))
	}
	lines := []string{total, window,
		s.text(ctx, "prompt.prefix", "layout", string(r.Layout), "prefix", r.PrefixHash, "percent", fmt.Sprintf("%.0f", 100*r.Reused))}
	if i := r.Instructions; i != nil {
		lines = append(lines, s.text(ctx, "prompt.instructions", "tokens", fmt.Sprint(i.Tokens), "budget", fmt.Sprint(i.Budget), "tier", fmt.Sprint(i.Tier)))
	}
	if r.Epoch.New {
		lines = append(lines, s.text(ctx, "prompt.epoch_new"))
	} else {
		lines = append(lines, s.text(ctx, "prompt.epoch", "at", r.Epoch.Started.Format(minute)))
	}
	words := s.text(ctx, "prompt.words")
	var files []string
	for _, p := range r.Problems {
		switch at := asWord(p.File); {
		case p.File == "":
		case p.Line > 0:
			files = append(files, fmt.Sprintf("%s:%d", at, p.Line))
		default:
			files = append(files, at)
		}
	}
	if n := len(files); n > 0 {
		words = i18n.Sentences(s.text(ctx, "prompt.problems", "files", strings.Join(slices.Compact(files), ", ")), words)
	}
	return "- " + strings.Join(append(lines, words), "\n- ")
}

// Dreams is what !dream can have done; dreaming itself is not the session's.
type Dreams struct {
	Wake   func()                                          // dream soon
	Status func(context.Context, i18n.Say) (string, error) // how the last one went
	Undo   func(context.Context, i18n.Say) (string, error) // take the last one back
	// Tidy asks for a dream of one part of the prompt (memories, tasks or skills), once a
	// day at most. It returns at once.
	Tidy func(part string)
}

// tidy has what has outgrown its cap put in order, at the next quiet moment.
func (s *Session) tidy(over []prompt.Oversize) {
	if s.cfg.Dreams == nil || s.cfg.Dreams.Tidy == nil {
		return
	}
	for _, o := range over {
		s.cfg.Dreams.Tidy(o.Contributor)
	}
}

// dream is !dream, for owners: it concerns everybody's memory.
func (s *Session) dream(ctx context.Context, in chat.Inbound, args string) (string, error) {
	switch {
	case s.cfg.Dreams == nil:
		return s.text(ctx, "dream.off"), nil
	case !tool.Allows(s.level(in), "!dream"):
		return s.text(ctx, "dream.owner"), nil
	}
	switch strings.ToLower(args) {
	case "":
		s.cfg.Dreams.Wake()
		return s.text(ctx, "dream.woken"), nil
	case "status":
		text, err := s.cfg.Dreams.Status(ctx, s.cfg.Messages.For(ctx, s.room))
		if err != nil {
			return "", err
		}
		open, err := s.openQuestions(ctx, in)
		return strings.TrimSpace(text + "\n\n" + open), err
	case "undo":
		text, err := s.cfg.Dreams.Undo(ctx, s.cfg.Messages.For(ctx, s.room))
		if err != nil {
			return "", err
		}
		return capital(text) + ".", nil
	}
	return s.text(ctx, "dream.usage"), nil
}

// mostNearest is how many names are offered for one that was mistyped.
const mostNearest = 3

// nearestLine offers those of names that word may have been meant to be; "" = none is
// near. before is put before each.
func (s *Session) nearestLine(ctx context.Context, word string, names []string, before string) string {
	near := Nearest(word, names)
	if len(near) == 0 {
		return ""
	}
	for i := range near {
		near[i] = before + near[i]
	}
	return s.text(ctx, "nearest", "names", asWords(near))
}

// Nearest returns the names that word may have been meant to be, the likeliest first: those
// that it begins, and those that a slip or two of the fingers makes of it.
func Nearest(word string, names []string) []string {
	word = strings.ToLower(word)
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	for _, n := range names {
		far := slips(word, strings.ToLower(n))
		if len(word) >= 2 && strings.HasPrefix(n, word) {
			far = min(far, 1)
		}
		if most := max(1, min(len(word), len(n))/3); far <= min(most, 2) {
			found = append(found, candidate{n, far})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.far - b.far })
	var out []string
	for _, c := range found[:min(len(found), mostNearest)] {
		out = append(out, c.name)
	}
	return out
}

// slips is how many letters must be added, left out, changed or swapped with their
// neighbour to make b of a.
func slips(a, b string) int {
	x, y := []rune(a), []rune(b)
	var older, old []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(x); i++ {
		older, old, row = old, row, make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			changed := old[j-1]
			if x[i-1] != y[j-1] {
				changed++
			}
			row[j] = min(old[j]+1, row[j-1]+1, changed)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(y)]
}

// skills is the command !skills: the skills that may be read here, a line each, or sharing one.
func (s *Session) skills(ctx context.Context, in chat.Inbound, args string) (string, error) {
	if verb, name, _ := strings.Cut(args, " "); strings.EqualFold(verb, "share") {
		return s.shareSkill(ctx, in, strings.Trim(strings.TrimSpace(name), "`"))
	}
	all, err := s.cfg.Skills.List(s.place(in))
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return s.text(ctx, "skills.none"), nil
	}
	var b strings.Builder
	b.WriteString(s.text(ctx, "skills.head") + "\n\n")
	for _, k := range all[:min(len(all), mostListed)] {
		fmt.Fprintf(&b, "- `%s`: %s%s\n", k.Name, history.OneLine(k.Summary, 150), s.whoseSkill(ctx, k))
	}
	if more := len(all) - mostListed; more > 0 {
		b.WriteString("- " + s.text(ctx, "skills.more", "count", fmt.Sprint(more)) + "\n")
	}
	return strings.TrimSpace(b.String()), nil
}

// whoseSkill says who may read a skill that is not everybody's.
func (s *Session) whoseSkill(ctx context.Context, k skill.Skill) string {
	switch {
	case k.Label.Readers == trust.Everybody:
		return ""
	case k.Label.Readers.Room() == "":
		return " (" + s.text(ctx, "skills.yours") + ")"
	}
	return " (" + s.text(ctx, "skills.room") + ")"
}

// shareSkill makes a skill that may be read here everybody's. Only owners can: they vouch for it.
func (s *Session) shareSkill(ctx context.Context, in chat.Inbound, name string) (string, error) {
	switch {
	case !tool.Allows(s.level(in), "!skills share"):
		return s.text(ctx, "skills.owners"), nil
	case name == "":
		return s.text(ctx, "skills.share"), nil
	}
	k, err := s.cfg.Skills.Share(s.place(in), name)
	for known, key := range map[error]string{skill.ErrUnknown: "skills.unknown", skill.ErrShared: "skills.already",
		skill.ErrTaken: "skills.taken", skill.ErrFront: "skills.front"} {
		if errors.Is(err, known) {
			return s.text(ctx, key, "name", asWord(name)), nil
		}
	}
	if err != nil {
		return "", err
	}
	s.log.Info("a skill is everybody's now", "skill", k.Name, "who", in.Sender)
	return s.text(ctx, "skills.shared", "name", asWord(k.Name), "path", asWord(k.Path)), nil
}
