package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/compaction"
	"reverie/internal/delivery"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// answerAll answers what a person wrote: the session hears it, the assembler reads
// the history, the model answers, tools act, the reply leaves.
func (s *Session) answerAll(ctx context.Context, burst []chat.Message) error {
	for len(burst) > 0 {
		heard, err := s.hear(ctx, burst)
		if err != nil {
			return err
		}
		said := burst[:heard.taken]
		in := item{Message: burst[heard.taken-1]}
		in.ID = heard.answers
		burst = burst[heard.taken:]
		switch {
		case heard.answers == "": // told in an earlier conversation, and answered there
		case heard.answer != "": // the program died between the answer and its delivery
			err = s.catchUp(ctx, in, heard.answer)
		default:
			err = s.respond(ctx, in, named(said)[:len(said)]...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin waits until one more turn may run, and shows that an answer is being written.
// done must be called when it is.
func (s *Session) begin(ctx context.Context, now settings.Current) (done func(), err error) {
	leave := s.waiting.PersonWaits(s.firstModel(now.Role))
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	s.cfg.Transport.Typing(ctx, s.room, true)
	return func() {
		s.cfg.Transport.Typing(context.WithoutCancel(ctx), s.room, false)
		<-s.turns
		leave()
	}, nil
}

// respond answers the newest person's message of the history, as a reply to in. Those of
// done are dealt with when the answer is there.
func (s *Session) respond(ctx context.Context, in item, done ...string) error {
	now, err := s.mode(ctx)
	if err != nil {
		return err
	}
	leave, err := s.begin(ctx, now)
	if err != nil {
		return err
	}
	defer leave()
	t := &turn{Session: s, in: in, answering: in.ID}
	t.begun = t.whileSlow(ctx)
	defer func() { t.begun(); s.meanwhile = nil }()
	reply, err := t.rounds(ctx)
	if err != nil {
		return err
	}
	return t.conclude(ctx, *s.ours(replyID(in.ID), reply.Text, t.label), done)
}

// say says text as the answer to in.
func (s *Session) say(ctx context.Context, in item, text string) error {
	return s.cfg.Transport.Send(ctx, s.room, s.answerTo(ctx, in, text))
}

// answerTo is text as the answer to in.
func (s *Session) answerTo(ctx context.Context, in item, text string) chat.Outgoing {
	m := chat.Outgoing{ID: replyID(in.ID), Text: s.shown(ctx, text), Thread: s.thread, Notice: in.event.Kind == chat.MemoryQuestion}
	if in.event.Kind == "" { // nobody can see what the others answer
		m.ReplyTo = in.ID
	} else if in.event.Verbatim && in.event.Mention {
		m.Mention = []string{in.Sender}
	}
	return m
}

// heard is what became of the first messages of a burst.
type heard struct {
	taken   int    // so many of them
	answers string // the message that their reply answers; empty = they need none
	answer  string // that reply, when it was stored before an interruption
}

// hear stores the messages of a burst, a row for each. Those that were stored before an interruption are
// taken by themselves, with their group: they may have their answer already.
func (s *Session) hear(ctx context.Context, burst []chat.Message) (heard, error) {
	if err := s.branch(ctx, burst[0]); err != nil {
		return heard{}, err
	}
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return heard{}, err
	}
	if err := agent.CloseCalls(ctx, s.cfg.History, s.talk, past, s.cfg.Now()); err != nil {
		return heard{}, err
	}
	stored := func(in chat.Message) bool {
		return slices.ContainsFunc(past, func(m history.Message) bool { return m.Role == llm.User && m.EventID == in.ID })
	}
	h := heard{taken: 1}
	for h.taken < len(burst) && stored(burst[h.taken]) == stored(burst[0]) {
		h.taken++
	}
	if stored(burst[0]) {
		switch g := groupOf(past, burst[h.taken-1].ID); g.answer {
		case -1:
			h.answers = past[g.last].EventID
		default:
			h.answers, h.answer = strings.TrimPrefix(past[g.answer].EventID, replyID("")), past[g.answer].Text
		}
		return h, s.together(ctx, nil)
	}
	var said []history.Message
	for _, in := range burst[:h.taken] {
		m, err := s.message(ctx, in)
		if err != nil {
			return heard{}, err
		}
		said = append(said, m)
	}
	err = s.together(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, m := range said {
			switch err := s.cfg.History.AppendIn(ctx, tx, &m); {
			case errors.Is(err, history.ErrKnown): // told in an earlier conversation
			case err != nil:
				return err
			default:
				h.answers = m.EventID
			}
		}
		return nil
	})
	return h, err
}

// message is in as the history keeps it.
func (s *Session) message(ctx context.Context, in chat.Message) (history.Message, error) {
	at := in.At
	if at.IsZero() {
		at = s.cfg.Now()
	}
	m := history.Message{
		Room: s.talk, Role: llm.User, EventID: in.ID, Sender: in.Sender, Text: in.Text, At: at, Files: s.attachments().Files(ctx, in),
		Header: s.cfg.Prompt.Header(at.In(s.cfg.Location), in.Sender, !in.Private),
	}
	quotes, err := s.readable(ctx, in)
	if err != nil {
		return m, err
	}
	if s.thread != "" { // it began with its root, see branch
		quotes = slices.DeleteFunc(quotes, func(q chat.Quote) bool { return q.Why == chat.QuoteThread })
	}
	m.Quoted, quotes = s.attachments().Quotes(quotes, s.cfg.Rooms.UserID(), s.cfg.Location)
	m.Label, err = s.labelOf(ctx, in.Head, quotes, m.Files)
	return m, err
}

// withdrawn reports whether turn ended with err because the answer is not wanted any more.
func withdrawn(turn context.Context, err error) bool {
	return errors.Is(err, agent.ErrWithdrawn) || errors.Is(context.Cause(turn), agent.ErrWithdrawn)
}

// item is what a turn works on: a person's message, or an event as if it were one.
type item struct {
	chat.Message
	event chat.Event // no Kind = a person wrote it
}

func asEvent(e chat.Event) item { return item{chat.Message{Head: e.Head, Text: e.Text}, e} }

// turn is the work on one item, as the work of a loop.
type turn struct {
	*Session
	in    item
	begun func() // is called when the first words come

	answering string   // the message whose answer is begun, until the model is asked; "" = none
	questions []string // the messages that this answers, as takeUp found them
	condensed bool     // messages have left the conversation, and a model was asked for a summary

	label trust.Label            // of the last request, and so of what came of it
	told  []prompt.SectionReport // its sections
}

// rounds asks the model, runs the tools it calls and asks again, until it answers in words.
func (t *turn) rounds(ctx context.Context) (llm.Reply, error) {
	reply, err := agent.Loop(ctx, t, 0, t.cfg.MaxRound)
	if reply.Finish == "length" {
		reply.Text += agent.CutOff
	}
	return reply, err
}

// Ready implements agent.Work.
func (t *turn) Ready(ctx context.Context) error {
	if wanted, err := t.wanted(ctx, t.in); err != nil || !wanted {
		return cmp.Or(err, agent.ErrWithdrawn)
	}
	return nil
}

// Shorten implements agent.Work: it compacts the conversation.
func (t *turn) Shorten(ctx context.Context) bool {
	done, err := t.compactTo(ctx, compaction.Refused, 60)
	if done.ID == 0 && err != nil {
		t.log.Error("conversation not compacted", "reason", compaction.Refused, "err", err)
	}
	return done.ID != 0
}

// Infer implements agent.Work: it makes one request: the prompt is assembled from the files as they are
// now, what is new in it is committed, and only then it is sent.
func (t *turn) Infer(ctx context.Context, last bool) (llm.Reply, error) {
	p, how, err := t.fits(ctx)
	if err != nil {
		return llm.Reply{}, err
	}
	if err := t.cfg.Prompt.Commit(ctx, p, t.noting()...); err != nil {
		return llm.Reply{}, err
	}
	t.answering, t.questions = "", nil
	t.log.Info("prompt", "message", t.in.ID, "report", p.Report)
	t.tidy(p.Report.Oversize)
	t.label, t.told = trust.Label{Integrity: p.Integrity, Readers: t.place(t.in.Head).Readers()}, p.Report.Sections
	t.sent = p.Messages()
	req := llm.Request{Messages: t.sent, Tools: t.offer(how).Specs, NoCalls: last, Fit: t.cfg.Tools.Fit, Think: how.mode.Think,
		Temperature: &how.mode.Temperature, Marks: p.CacheMarks()}
	var draft func(string)
	if t.in.ID != "" && t.in.event.Kind == "" && t.streams(ctx) {
		draft = func(text string) {
			if text = goal.ShowDraft(prompt.WithoutFences(text)); strings.TrimSpace(text) == "" {
				return
			}
			t.begun()
			t.draft(ctx, text, false)
		}
	}
	reply, err := t.cfg.Models.Complete(ctx, how.mode.Role, req, draft)
	t.count(ctx, p.Report, last, reply)
	return reply, err
}

// takeUp notes which messages the answer that is begun is about to answer: what people do
// to one of them concerns it from now on. It is stored when the model is asked.
func (t *turn) takeUp(past []history.Message) {
	i := len(past) - 1
	for i >= 0 && past[i].Role != llm.User {
		i--
	}
	if i < 0 || t.answering == "" {
		return
	}
	g := groupOf(past, past[i].EventID)
	t.mail.concerns(true, replyID(t.answering))
	t.questions = nil
	if !g.known {
		return
	}
	for _, m := range past[g.first : g.last+1] {
		t.mail.concerns(true, m.EventID)
		if !history.TakenBack(m) {
			t.questions = append(t.questions, m.EventID)
		}
	}
	if t.mail.edited(t.questions...) { // it came before
		t.mail.stop("", errChanged)
	}
}

// noting stores what takeUp noted.
func (t *turn) noting() []func(context.Context, *sql.Tx) error {
	if len(t.questions) == 0 {
		return nil
	}
	return []func(context.Context, *sql.Tx) error{func(ctx context.Context, tx *sql.Tx) error {
		for _, question := range t.questions {
			if err := delivery.NoteAnswered(ctx, tx, question, replyID(t.answering)); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Act implements agent.Work: it stores the model's calls, runs them in order and stores each result as
// soon as it is there. Those that a person must allow first are stored with the question.
func (t *turn) Act(ctx context.Context, reply llm.Reply) error {
	scope, past, err := t.callScope(ctx, t.in)
	if err != nil {
		return err
	}
	scope.Label = t.label
	seen, mark, err := t.reading(ctx, past)
	if err != nil {
		return err
	}
	if scope.Granted, err = t.granted(ctx, t.in.Sender, past, mark); err != nil {
		return err
	}
	asked, err := t.storeCalls(ctx, scope, reply, seen, mark)
	if err != nil {
		return err
	}
	for _, c := range reply.ToolCalls {
		if err := ctx.Err(); err != nil {
			return err
		}
		if asked[c.ID] {
			continue
		}
		scope.Send, scope.SetMode = t.sending(t.in, c.ID), t.setsMode(t.in)
		t.meanwhile.does(t.doing(ctx, c.Name))
		result := t.cfg.Tools.Run(ctx, scope, c)
		t.meanwhile.does(t.text(ctx, "doing.thinking"))
		t.log.Info("tool", "message", t.in.ID, "tool", c.Name, "failed", result.Failed)
		row := history.Message{Room: t.talk, Role: llm.Tool, CallID: c.ID, Text: result.Content, Failed: result.Failed, At: t.cfg.Now(),
			Label: trust.Label{Integrity: result.Integrity, Readers: t.label.Readers}}
		if err := t.cfg.History.Append(ctx, &row); err != nil {
			return err
		}
	}
	return nil
}

// draft shows text in the place of the answer.
func (t *turn) draft(ctx context.Context, text string, notice bool) {
	err := t.cfg.Transport.Send(ctx, t.room, chat.Outgoing{ID: replyID(t.in.ID), Thread: t.thread, Text: text, Notice: notice, Draft: true,
		ReplyTo: t.in.ID})
	if err != nil {
		t.log.Debug("draft not shown", "err", err)
	}
}

// calm is the one sentence a person reads when a message could not be
// answered. The full error is in the operator's log.
func (s *Session) calm(ctx context.Context, err error, ref string) string {
	kept := s.text(ctx, "error.kept")
	var model *llm.Error
	var large *prompt.TooLargeError
	switch {
	case errors.As(err, &model):
		return i18n.Sentences(model.ForPeople().In(s.cfg.Messages.For(ctx, s.room)), kept)
	case errors.As(err, &large):
		return s.text(ctx, "error.too_large", "needed", fmt.Sprint(large.Needed), "room", fmt.Sprint(max(large.Room, 0)))
	case errors.Is(err, agent.ErrRounds):
		return i18n.Sentences(s.text(ctx, "error.rounds"), kept)
	default:
		return i18n.Sentences(s.text(ctx, "error.unknown", "reference", ref), kept)
	}
}

// reference is a short code that ties a sentence in a room to a line in the log.
func reference() string { return strings.ToLower(rand.Text()[:6]) }

// streams tells whether the answer may be seen while it is written. Where more
// than two are, half an answer only makes noise, unless the room wants it.
func (t *turn) streams(ctx context.Context) bool {
	set, err := t.settings().Get(ctx, t.room, settings.Streaming)
	switch {
	case err != nil:
		t.log.Warn("whether to stream here is not known", "err", err)
		return false
	case set != settings.Auto:
		return set == "on"
	case t.in.Private:
		return true
	}
	n, err := t.cfg.Rooms.People(ctx, t.room)
	return err == nil && n > 0 && n <= 2
}

// A commit waits for the disk, and all rooms write one after the other. So what is heard, what
// is sent to the model and what is answered is one transaction each.

// storing stores something in a transaction of somebody else's.
type storing func(ctx context.Context, tx *sql.Tx) error

// together stores what f stores, and what has waited for the next transaction. f may be nil.
func (s *Session) together(ctx context.Context, f storing) error {
	err := store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		for _, f := range []storing{s.along, f} {
			if f == nil {
				continue
			}
			if err := f(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.along = nil
	}
	return err
}

// conclude stores the answer and says it. The messages done need no more work then.
func (t *turn) conclude(ctx context.Context, answer history.Message, done []string) error {
	markers, _ := agent.Markers(answer.Text)
	m := t.answerTo(ctx, t.in, answer.Text)
	if len(markers) == 0 && strings.TrimSpace(m.Text) != "" {
		stored := answer
		err := t.cfg.Transport.SendFinal(ctx, t.room, m, done, func(ctx context.Context, tx *sql.Tx) error {
			if err := t.cfg.History.AppendIn(ctx, tx, &stored); err != nil {
				return err
			}
			return t.approvals.Open(ctx, tx, t.talk, t.in.ID)
		})
		if !errors.Is(err, history.ErrKnown) {
			if err == nil {
				t.taken = max(t.taken, stored.ID)
				err = t.askApprovals(ctx, t.in.ID)
			}
			return err
		}
	}
	// An answer that is there already is said as it is, and the goal hears of it first.
	if err := t.note(ctx, &answer); err != nil {
		return err
	}
	if err := t.takeIn(ctx, t.reporter(t.in), answer); err != nil {
		return err
	}
	if err := t.say(ctx, t.in, answer.Text); err != nil {
		return err
	}
	return t.askGathered(ctx, t.in.ID)
}

// askGathered opens what was gathered for event, and asks it.
func (s *Session) askGathered(ctx context.Context, event string) error {
	if err := s.approvals.Open(ctx, s.cfg.DB, s.talk, event); err != nil {
		return err
	}
	return s.askApprovals(ctx, event)
}
