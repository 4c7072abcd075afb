package session

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"reverie/internal/agent"
	"reverie/internal/approval"
	"reverie/internal/ask"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/compaction"
	"reverie/internal/delivery"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/recall"
	"reverie/internal/session/mailbox"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/trace"
	"reverie/internal/trust"
)

// answerBurst answers messages of a person: it stores them, the assembler reads the history, the
// model answers, tools act, the reply is sent.
func (s *Session) answerBurst(ctx context.Context, burst []chat.Message) error {
	for len(burst) > 0 {
		stored, err := s.storeBurst(ctx, burst)
		if err != nil {
			return err
		}
		said := burst[:stored.count]
		in := item{Message: burst[stored.count-1]}
		in.ID = stored.question
		burst = burst[stored.count:]
		switch {
		case stored.question == "": // stored and answered in an earlier conversation
		case stored.reply != "": // the program died between the answer and its delivery
			err = s.sendStoredAnswer(ctx, in, stored.reply)
		default:
			err = s.respond(ctx, in, burstIDs(said)[:len(said)]...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// acquireTurn waits for a free turn and shows the typing notification. The caller must call done.
func (s *Session) acquireTurn(ctx context.Context, now settings.RoomMode) (done func(), err error) {
	leave := s.cfg.Waiting.PersonWaits(s.firstModel(now.Role))
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	s.cfg.Transport.ShowTyping(ctx, s.room, true)
	return func() {
		s.cfg.Transport.ShowTyping(context.WithoutCancel(ctx), s.room, false)
		<-s.turns
		leave()
	}, nil
}

// respond answers the newest person's message in the history, as a reply to in. The inbox rows of the
// messages done are finished together with the answer.
func (s *Session) respond(ctx context.Context, in item, done ...string) (err error) {
	ctx, span := trace.Start(ctx, trace.Turn, "reverie")
	defer func() { span.End(trace.Failure(err)) }()
	now, err := s.mode(ctx)
	if err != nil {
		return err
	}
	leave, err := s.acquireTurn(ctx, now)
	if err != nil {
		return err
	}
	defer leave()
	t := &turn{Session: s, in: in, answering: in.ID}
	t.stopProgress = t.startProgress(ctx)
	defer func() { t.stopProgress(); s.progress = nil }()
	answer, err := t.rounds(ctx)
	if err != nil {
		return err
	}
	if err = t.finish(ctx, answer, done); err == nil {
		command.WarnOfLimits(ctx, s.newCommandCall(in.Message), s.cfg.Transport)
	}
	return err
}

// sendAnswer sends text as the answer to in.
func (s *Session) sendAnswer(ctx context.Context, in item, text string) error {
	round, err := s.cfg.History.LoadEnd(ctx, s.talk, chat.ReplyID(in.ID), beginsRound)
	if err != nil {
		return err
	}
	return s.cfg.Transport.Send(ctx, s.room, s.answerMessage(ctx, in, text, ask.Of(round, chat.ReplyID(in.ID))))
}

// answerMessage makes the outgoing message that answers in with text, or with q, the question that the model asks.
func (s *Session) answerMessage(ctx context.Context, in item, text string, q *ask.Question) chat.Outgoing {
	m := chat.Outgoing{ID: chat.ReplyID(in.ID), Text: s.visibleAnswer(ctx, text), Thread: s.thread,
		Notice: in.event.Kind == chat.MemoryQuestion, Options: in.event.Options}
	if q != nil {
		q.Show(&m)
	}
	if in.event.Kind == "" && !strings.HasPrefix(in.ID, approval.OutcomePrefix) { // people cannot see the others
		m.ReplyTo = in.ID
	} else if in.event.Verbatim && in.event.Mention {
		m.Mention = []string{in.Sender}
	}
	return m
}

// storedBurst tells how storeBurst stored the first messages of a burst.
type storedBurst struct {
	count    int    // of these messages
	question string // the message that their reply answers; empty = they need no reply
	reply    string // the reply, if an earlier run stored it; else empty
}

// storeBurst stores the first messages of a burst, a row for each. Messages that an interrupted run has
// stored form a group of their own, because they may have an answer already.
func (s *Session) storeBurst(ctx context.Context, burst []chat.Message) (storedBurst, error) {
	if err := s.startThread(ctx, burst[0]); err != nil {
		return storedBurst{}, err
	}
	past, err := pastBefore(ctx, s.cfg.History, s.talk, burst)
	if err != nil {
		return storedBurst{}, err
	}
	if err := agent.CloseCalls(ctx, s.cfg.History, s.talk, past, s.cfg.Now()); err != nil {
		return storedBurst{}, err
	}
	stored := func(in chat.Message) bool {
		return slices.ContainsFunc(past, func(m history.Message) bool { return m.Role == llm.User && m.EventID == in.ID })
	}
	h := storedBurst{count: 1}
	for h.count < len(burst) && stored(burst[h.count]) == stored(burst[0]) {
		h.count++
	}
	if stored(burst[0]) {
		switch g := groupOf(past, burst[h.count-1].ID); g.answer {
		case -1:
			if h.question, err = s.answeredAs(ctx, past[g.last].EventID); err != nil {
				return storedBurst{}, err
			}
		default:
			h.question, h.reply = chat.RepliedTo(past[g.answer].EventID), past[g.answer].Text
		}
		return h, s.commit(ctx, nil)
	}
	if ask.Open(past, burst[0].ID) != nil {
		if _, err := s.closeQuestion(ctx, burst[0].ID); err != nil {
			return storedBurst{}, err
		}
	}
	h.question, err = s.appendBurst(ctx, burst[:h.count], "")
	return h, err
}

// pastBefore returns what storeBurst needs of the history: the newest message of a person and what follows it, or all
// of it if an interrupted run has stored a message of the burst.
func pastBefore(ctx context.Context, h *history.Store, talk history.Timeline, burst []chat.Message) ([]history.Message, error) {
	for _, in := range burst {
		if _, stored, err := h.Find(ctx, talk, in.ID); err != nil || stored {
			past, failed := h.Load(ctx, talk)
			return past, cmp.Or(err, failed)
		}
	}
	return h.LoadEnd(ctx, talk, "", func(m history.Message) bool { return m.Role == llm.User && m.Sender != "" })
}

// beginsRound reports whether m begins a round: it is not the result of a tool.
func beginsRound(m history.Message) bool { return m.Role != llm.Tool }

// appendBurst appends messages to the history, and returns the last one that is not in an earlier
// conversation. reply is recorded as their answer, unless it is empty.
func (s *Session) appendBurst(ctx context.Context, burst []chat.Message, reply string) (last string, err error) {
	var said []history.Message
	for _, in := range burst {
		m, err := s.historyMessage(ctx, in)
		if err != nil {
			return "", err
		}
		said = append(said, m)
	}
	return last, s.commit(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, m := range said {
			err := s.cfg.History.AppendIn(ctx, tx, &m)
			if errors.Is(err, history.ErrDuplicate) {
				continue
			}
			if err == nil && reply != "" {
				err = delivery.RecordAnswer(ctx, tx, m.EventID, reply)
			}
			if err == nil {
				err = recall.Notice(ctx, tx, s.cfg.Manner, m)
			}
			if err != nil {
				return err
			}
			last = m.EventID
		}
		return nil
	})
}

// join adds what the person wrote since the last request to the history. This turn's answer answers it, too.
func (t *turn) join(ctx context.Context) error {
	if t.answering != "" || t.in.event.Kind != "" || t.in.again { // answering: it is the first request
		return nil
	}
	more := t.mail.Join(t.in.Message)
	t.joined = append(t.joined, more...)
	more, err := t.dropCancelled(ctx, more)
	if err == nil {
		more, err = t.transcribeVoice(ctx, more)
	}
	if err != nil || len(more) == 0 {
		return err
	}
	t.answering = t.in.ID
	_, err = t.appendBurst(ctx, more, chat.ReplyID(t.in.ID))
	return err
}

// historyMessage converts in to a row of the history.
func (s *Session) historyMessage(ctx context.Context, in chat.Message) (history.Message, error) {
	at := in.At
	if at.IsZero() {
		at = s.cfg.Now()
	}
	m := history.Message{
		Room: s.talk, Role: llm.User, EventID: in.ID, Sender: in.Sender, Text: in.Text, At: at, Files: s.attachments().Files(ctx, in),
		Header: s.cfg.Prompt.Header(at.In(s.cfg.Profiles.PersonalOrUsualZone(s.place(in.Head).Readers())), in.Sender, !in.Private),
	}
	quotes, err := s.readableQuotes(ctx, in)
	if err != nil {
		return m, err
	}
	if s.thread != "" { // startThread has quoted the root
		quotes = slices.DeleteFunc(quotes, func(q chat.Quote) bool { return q.Why == chat.QuoteThread })
	}
	m.Quoted, quotes = s.attachments().Quotes(quotes, s.cfg.Rooms.UserID(), s.cfg.Profiles.PersonalOrUsualZone(s.place(in.Head).Readers()))
	if m.Label, err = s.messageLabel(ctx, in.Head, quotes, m.Files); err != nil || in.Answers == "" {
		return m, err
	}
	of, _, err := s.cfg.History.LabelOf(ctx, s.room, in.Answers)
	m.Label.Integrity = min(m.Label.Integrity, of.Integrity) // the model worded the answers
	return m, err
}

// cancelled reports whether turn ended because its message was redacted or its room left.
func cancelled(turn context.Context, err error) bool {
	return errors.Is(err, agent.ErrWithdrawn) || errors.Is(context.Cause(turn), agent.ErrWithdrawn)
}

// item is what a turn answers: a person's message, or a system event in the form of one.
type item struct {
	chat.Message
	event chat.Event // Kind is empty for a person's message
	again bool       // its answer replaces an earlier one, where people do not look for an answer to a new message
}

func eventItem(e chat.Event) item { return item{chat.Message{Head: e.Head, Text: e.Text}, e, false} }

// turn answers one item. It implements agent.Work.
type turn struct {
	*Session
	in           item
	stopProgress func() // called at the first words of the answer

	answering    string   // the message to be answered, until the model is asked; "" = none
	questions    []string // the messages that the answer replies to, from trackQuestions
	summaryTried bool     // a model was asked for a summary in this turn

	asked    *ask.Question          // the question that is the answer; nil = the model answers in words
	label    trust.Label            // of the last request, and of what the model makes of it
	sections []prompt.SectionReport // of the last request
}

// rounds asks the model and runs its tool calls, until it answers without a call or asks a question.
func (t *turn) rounds(ctx context.Context) (history.Message, error) {
	reply, err := agent.Loop(ctx, t, 0, t.cfg.MaxRound)
	if reply.Finish == "length" {
		reply.Text += agent.CutOff
	}
	if t.asked != nil {
		return *t.ownMessage(t.asked.ID, t.asked.Numbered(), t.asked.Label), nil
	}
	return *t.ownMessage(chat.ReplyID(t.in.ID), reply.Text, t.label), err
}

// Ready implements agent.Work.
func (t *turn) Ready(ctx context.Context) error {
	if wanted, err := t.stillWanted(ctx, t.in); err != nil || !wanted {
		return cmp.Or(err, agent.ErrWithdrawn)
	}
	round, err := t.cfg.History.LoadEnd(ctx, t.talk, chat.ReplyID(t.in.ID), beginsRound)
	if t.asked = ask.Of(round, chat.ReplyID(t.in.ID)); err != nil || t.asked != nil {
		return cmp.Or(err, ask.ErrAsked)
	}
	return t.join(ctx)
}

// Shorten implements agent.Work: it compacts the conversation.
func (t *turn) Shorten(ctx context.Context) bool {
	done, err := t.compactTo(ctx, compaction.Refused, 60)
	if done.ID == 0 && err != nil {
		t.log.Error("conversation not compacted", "reason", compaction.Refused, "err", err)
	}
	return done.ID != 0
}

// Infer implements agent.Work: it assembles the prompt from the current files, commits what is new in
// it, then sends the request.
func (t *turn) Infer(ctx context.Context, last bool) (llm.Reply, error) {
	p, set, err := t.fittingPrompt(ctx)
	if err != nil {
		return llm.Reply{}, err
	}
	if err := t.cfg.Prompt.Commit(ctx, p, t.storeQuestions); err != nil {
		return llm.Reply{}, err
	}
	t.answering, t.questions = "", nil
	t.log.Info("prompt", "message", t.in.ID, "report", p.Report)
	if d := t.cfg.Dreams; d != nil && d.Tidy != nil {
		for _, o := range p.Report.Oversize {
			d.Tidy(o.Contributor)
		}
	}
	t.label, t.sections = trust.Label{Integrity: p.Integrity, Readers: t.place(t.in.Head).Readers()}, p.Report.Sections
	t.lastRequest = p.Messages()
	req := llm.Request{Messages: t.lastRequest, Tools: t.offer(set).Specs, NoCalls: last, Fit: t.cfg.Tools.Fit, Think: set.mode.Think,
		Temperature: &set.mode.Temperature, Marks: p.CacheMarks(), Person: t.in.Sender}
	var draft func(string)
	if t.in.ID != "" && t.in.event.Kind == "" && t.streams(ctx, set.mode.Streaming) {
		draft = func(text string) {
			if text = goal.VisibleDraft(prompt.WithoutFences(p.WithoutNotes(text))); strings.TrimSpace(text) == "" {
				return
			}
			t.stopProgress()
			t.draft(ctx, text, false)
		}
	}
	reply, err := t.cfg.Models.Complete(ctx, set.mode.Role, req, draft)
	reply.Text = p.WithoutNotes(reply.Text)
	t.learnTokenRatio(ctx, p.Report, last, reply)
	return reply, err
}

// trackQuestions records which messages the current answer replies to. An edit or redaction of one of
// them interrupts it. Infer stores the record.
func (t *turn) trackQuestions(past []history.Message) {
	i := len(past) - 1
	for i >= 0 && past[i].Role != llm.User {
		i--
	}
	if i < 0 || t.answering == "" {
		return
	}
	g := groupOf(past, past[i].EventID)
	t.mail.AddSubjects(true, chat.ReplyID(t.answering))
	t.questions = nil
	if !g.known {
		return
	}
	for _, m := range past[g.first : g.last+1] {
		t.mail.AddSubjects(true, m.EventID)
		if m.Role == llm.User && !history.IsRedacted(m) {
			t.questions = append(t.questions, m.EventID)
		}
	}
	if t.mail.HasEdit(t.questions...) { // the edit came first
		t.mail.Stop("", mailbox.ErrChanged)
	}
}

// storeQuestions stores what trackQuestions recorded.
func (t *turn) storeQuestions(ctx context.Context, tx *sql.Tx) error {
	for _, question := range t.questions {
		if err := delivery.RecordAnswer(ctx, tx, question, chat.ReplyID(t.answering)); err != nil {
			return err
		}
	}
	return nil
}

// Act implements agent.Work: it stores the model's calls, runs them in order and stores each result at
// once. A call that needs approval is stored with the question and does not run here.
func (t *turn) Act(ctx context.Context, reply llm.Reply) error {
	scope, past, err := t.callScope(ctx, t.in)
	if err != nil {
		return err
	}
	scope.Label = t.label
	input, granted, err := t.untrustedInput(ctx, past)
	if err != nil {
		return err
	}
	scope.Granted = granted
	asked, err := t.storeCalls(ctx, scope, reply, input)
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
		scope.Send, scope.Set = t.fileSender(t.in, c.ID), t.setter(t.in)
		t.progress.setActivity(t.activity(ctx, c.Name))
		result := t.cfg.Tools.Run(ctx, scope, c)
		t.progress.setActivity(t.text(ctx, "doing.thinking"))
		t.log.Info("tool", "message", t.in.ID, "tool", c.Name, "failed", result.Failed)
		row := history.Message{Room: t.talk, Role: llm.Tool, CallID: c.ID, Text: result.Content, Failed: result.Failed, At: t.cfg.Now(),
			Label: trust.Label{Integrity: result.Integrity, Readers: t.label.Readers}}
		if err := t.cfg.History.Append(ctx, &row); err != nil {
			return err
		}
	}
	return nil
}

// draft shows text in place of the answer.
func (t *turn) draft(ctx context.Context, text string, notice bool) {
	err := t.cfg.Transport.Send(ctx, t.room, chat.Outgoing{ID: chat.ReplyID(t.in.ID), Thread: t.thread, Text: text, Notice: notice,
		Draft: true, ReplyTo: t.in.ID})
	if err != nil {
		t.log.Debug("draft not shown", "err", err)
	}
}

// streams reports whether drafts of the answer are shown, as the room's setting says. By default that is only so where at
// most two people are: in larger rooms edits are noise.
func (t *turn) streams(ctx context.Context, set string) bool {
	switch {
	case set != settings.Auto:
		return set == "on"
	case t.in.Private:
		return true
	}
	n, err := t.cfg.Rooms.People(ctx, t.room)
	return err == nil && n > 0 && n <= 2
}

// A commit waits for the disk, and SQLite has one writer. So a turn has one transaction each for the
// received messages, the request and the answer.

// txFunc writes in the caller's transaction.
type txFunc func(ctx context.Context, tx *sql.Tx) error

// commit runs pendingWrite and f in one transaction. f may be nil.
func (s *Session) commit(ctx context.Context, f txFunc) error {
	err := store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		for _, f := range []txFunc{s.pendingWrite, f} {
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
		s.pendingWrite = nil
	}
	return err
}

// finish stores and sends the answer, and marks the messages done as finished.
func (t *turn) finish(ctx context.Context, answer history.Message, done []string) error {
	for _, in := range t.joined {
		done = append(done, in.ID)
	}
	m := t.answerMessage(ctx, t.in, answer.Text, t.asked)
	if len(agent.GoalMarkers(answer.Text)) == 0 && strings.TrimSpace(m.Text) != "" {
		stored := answer
		err := t.cfg.Transport.SendFinal(ctx, t.room, m, done, func(ctx context.Context, tx *sql.Tx) error {
			if err := t.cfg.History.AppendIn(ctx, tx, &stored); err != nil {
				return err
			}
			return t.approvals.Open(ctx, tx, t.talk, t.in.ID)
		})
		if !errors.Is(err, history.ErrDuplicate) {
			if err == nil {
				t.appliedUpTo = max(t.appliedUpTo, stored.ID)
				err = t.askApprovals(ctx, t.in.ID)
			}
			return err
		}
	}
	// The answer has goal markers or nothing visible, or was stored earlier: apply markers before sending.
	if err := t.appendOnce(ctx, &answer); err != nil {
		return err
	}
	if err := t.applyMarkers(ctx, t.markerCaller(t.in), answer); err != nil {
		return err
	}
	if err := t.sendAnswer(ctx, t.in, answer.Text); err != nil {
		return err
	}
	return t.openApprovals(ctx, t.in.ID)
}

// openApprovals opens the approvals gathered for event and asks their questions.
func (s *Session) openApprovals(ctx context.Context, event string) error {
	if err := s.approvals.Open(ctx, s.cfg.DB, s.talk, event); err != nil {
		return err
	}
	return s.askApprovals(ctx, event)
}
