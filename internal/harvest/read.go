package harvest

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/llm/template"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

const (
	maxBatchMessages = 40    // messages in one request: more would overload small models
	maxBatchTokens   = 6_000 // of messages in one request, also in a larger window
	minBatchTokens   = 150   // tokens for messages; with less a request is useless
	maxSharedTries   = 3     // of a message together with others, then it is tried alone
)

// pending is a conversation with unread messages: a room or a thread.
type pending struct {
	room     string
	messages int
	heard    time.Time // when a person wrote there last
}

func (h *Harvester) pendingConversations(ctx context.Context) (all []pending, err error) {
	ids, err := store.Column[int64](ctx, h.cfg.DB, `SELECT message FROM harvest WHERE state = 'new'`)
	if err != nil || len(ids) == 0 {
		return nil, store.Wrap(err, "harvest: look for conversations to read")
	}
	shares, err := history.CountByTimeline(ctx, h.cfg.DB, ids)
	for _, s := range shares {
		w := pending{room: string(s.Room), messages: s.Messages, heard: s.Last}
		if at, failed := h.cfg.LastMessageAt(ctx, s.Room.Room()); failed != nil {
			return nil, store.Wrap(failed, "harvest: look for conversations to read")
		} else if !at.IsZero() {
			w.heard = at
		}
		all = append(all, w)
	}
	return all, store.Wrap(err, "harvest: look for conversations to read")
}

// unreadMessage is a person's message to read.
type unreadMessage struct {
	id        int64
	tries     int
	pos       int // bytes of ownWords read so far
	event     string
	sender    string
	scope     memory.Scope
	integrity trust.Integrity // how far ownWords are trusted
	text      string          // text as stored
	ownWords  string          // the sender's own words in text
	tail      string          // what the prompt appended to it, such as recalled memories
	question  string          // the assistant's question that it may answer
	at        time.Time
	learned   []memory.Entry // entries learned from it already

	excerpt    string // the part of ownWords in the request
	excerptEnd int    // end of excerpt in ownWords
}

// batch is the content of one request: messages of one conversation and one scope.
type batch struct {
	room     string
	messages []unreadMessage
	prompt   string
	skipped  int // messages skipped and marked so
}

// nextBatch builds the next request from the oldest unread messages of room. It marks messages that
// must not be read.
func (h *Harvester) nextBatch(ctx context.Context, room string, halvings int) (batch, error) {
	b := batch{room: room}
	all, err := h.unread(ctx, room)
	if err != nil || len(all) == 0 {
		return b, err
	}
	form := Template.Load(h.cfg.Prompts, h.cfg.Default, h.log)
	window, answer := h.cfg.Window(role)
	space := window - answer - llm.EstimateTokens(form)
	space = min(space-space/10, maxBatchTokens) // margin for wrong estimates
	if space < minBatchTokens {
		return b, fmt.Errorf("the window of %d tokens, %d of them for the answer, has no room for messages beside the template",
			window, answer)
	}
	var transcript strings.Builder
	maxMessages := 1
	for i := range all {
		t := &all[i]
		why, err := h.skipReason(ctx, t)
		if err != nil {
			return b, err
		}
		if why != "" {
			if err := h.markMessage(ctx, t.id, "done", why); err != nil {
				return b, err
			}
			b.skipped++
			continue
		}
		if len(b.messages) == 0 {
			if maxMessages = maxBatchMessages >> min(t.tries+halvings, 10); t.tries >= maxSharedTries {
				maxMessages = 1
			}
		} else if t.scope != b.messages[0].scope || t.tries >= maxSharedTries {
			break
		}
		if t.question, err = h.precedingQuestion(ctx, room, t); err != nil {
			return b, err
		}
		line, fits := h.formatMessage(len(b.messages)+1, t, space)
		if !fits && len(b.messages) > 0 {
			break
		}
		space -= llm.EstimateTokens(line)
		transcript.WriteString(line)
		b.messages = append(b.messages, *t)
		if len(b.messages) >= max(maxMessages, 1) || !fits {
			break
		}
	}
	b.prompt = template.Fill(form, "{transcript}", strings.TrimRight(transcript.String(), "\n"))
	return b, nil
}

// unread lists the unread messages of a conversation, oldest first; those that failed alone come last.
func (h *Harvester) unread(ctx context.Context, room string) (all []unreadMessage, err error) {
	const most = 200
	read := map[int64]unreadMessage{}
	var ids []int64
	err = store.Each(ctx, h.cfg.DB, func(row store.Row) error {
		var t unreadMessage
		err := row.Scan(&t.id, &t.tries, &t.pos)
		ids, read[t.id] = append(ids, t.id), t
		return err
	}, `SELECT message, tries, bytes_read FROM harvest WHERE state = 'new' ORDER BY tries > ?, message`, maxSharedTries)
	if err != nil || len(ids) == 0 {
		return nil, store.Wrap(err, "harvest: read messages")
	}
	filter := history.Filter{IDs: ids, Rooms: []history.Timeline{history.Timeline(room)}, Limit: most}
	err = history.Each(ctx, h.cfg.DB, filter, func(m history.Message) error {
		t := read[m.ID]
		t.event, t.sender, t.scope, t.text, t.tail, t.at = m.EventID, m.Sender, m.Label.Readers, m.Text, m.Tail, m.At
		t.ownWords, t.integrity = OwnWords(m.Text), ownWordsIntegrity(h.cfg.Level(m.Sender), m.Label.Integrity)
		all = append(all, t)
		return nil
	})
	return all, store.Wrap(err, "harvest: read messages")
}

// precedingQuestion returns the assistant's question right before t, or "".
func (h *Harvester) precedingQuestion(ctx context.Context, room string, t *unreadMessage) (question string, err error) {
	filter := history.Filter{Rooms: []history.Timeline{history.Timeline(room)}, Before: t.id, Newest: true, Limit: 1}
	err = history.Each(ctx, h.cfg.DB, filter, func(m history.Message) error {
		if len(m.Calls) == 0 && m.Label.Readers == t.scope && harvestable(m, trust.Foreign) {
			question = lastQuestion(m.Text)
		}
		return nil
	})
	return question, store.Wrap(err, "harvest: read the question before a message")
}

// Why a message is skipped.
const (
	skippedUntrusted  = "its sender is not one to learn from"
	skippedNoOwnWords = "it has no words of its sender"
	skippedRedacted   = "it was taken back, or something learned from it was"
)

// skipReason returns why t must not be read, or "". It fills in t.learned.
func (h *Harvester) skipReason(ctx context.Context, t *unreadMessage) (string, error) {
	switch {
	case t.scope.Check() != nil || !harvestable(history.Message{Role: llm.User, Sender: t.sender}, t.integrity):
		return skippedUntrusted, nil
	case history.IsRedacted(history.Message{Role: llm.User, Text: strings.TrimSpace(t.text)}):
		return skippedRedacted, nil
	case t.pos >= len(t.ownWords) || !strings.ContainsFunc(t.ownWords, isWordRune):
		return skippedNoOwnWords, nil
	}
	learned, removed, err := h.cfg.Store.LearnedFrom(ctx, t.scope, t.event)
	if removed {
		return skippedRedacted, err
	}
	// Facts stored as foreign text may be learned again from the person's own words.
	t.learned = slices.DeleteFunc(learned, func(e memory.Entry) bool { return e.Integrity < trust.User })
	return "", err
}

// formatMessage returns t as a line of the request, cut to tokens; fits reports whether all of it is in.
func (h *Harvester) formatMessage(number int, t *unreadMessage, tokens int) (line string, fits bool) {
	lead := ""
	if t.question != "" {
		lead = "    (the question before it: " + t.question + ")\n"
	}
	at := t.at.In(h.cfg.Profiles.PersonalOrUsualZone(t.scope)).Format("2006-01-02 15:04")
	lead += "[" + strconv.Itoa(number) + "] " + at + " " + chat.ShortName(t.sender) + ": "
	rest := t.ownWords[t.pos:]
	t.excerpt, t.excerptEnd, fits = rest, len(t.ownWords), true
	if space := tokens - llm.EstimateTokens(lead) - 2; llm.EstimateTokens(rest) > space {
		if number > 1 { // leave it to the next request
			return "", false
		}
		t.excerpt = cutToTokens(rest, max(space, minBatchTokens/3))
		t.excerptEnd, fits = t.pos+len(t.excerpt), len(t.excerpt) == len(rest)
	}
	return lead + strings.ReplaceAll(strings.TrimSpace(t.excerpt), "\n", "\n    ") + "\n", fits
}

// cutToTokens returns the beginning of text within tokens. It ends after a paragraph, sentence or
// word if one ends in the second half.
func cutToTokens(text string, tokens int) string {
	head := text[:min(len(text), len(text)*tokens/llm.EstimateTokens(text))]
	for llm.EstimateTokens(head) > tokens {
		head = head[:len(head)*9/10]
	}
	if head = strings.ToValidUTF8(head, ""); len(head) == len(text) {
		return head
	}
	for _, end := range []string{"\n", ". ", "! ", "? ", "。", " "} {
		if i := strings.LastIndex(head, end); i >= len(head)/2 {
			return head[:i+len(end)]
		}
	}
	return head
}

func (h *Harvester) markMessage(ctx context.Context, id int64, state, reason string) error {
	return store.Exec(ctx, h.cfg.DB, `UPDATE harvest SET state = ?, reason = ?, at = ? WHERE message = ? AND state = 'new'`,
		state, reason, h.cfg.Now().UnixMilli(), id)
}

// markRead records in tx how far the messages of b were read. It returns errChanged if one of them was modified.
func (b *batch) markRead(ctx context.Context, tx *sql.Tx, now time.Time) error {
	texts := map[int64]string{}
	ids := store.Map(b.messages, func(t unreadMessage) int64 { return t.id })
	err := history.Each(ctx, tx, history.Filter{IDs: ids}, func(m history.Message) error {
		texts[m.ID] = m.Text
		return nil
	})
	if err != nil {
		return store.Wrap(err, "harvest: read messages again")
	}
	for _, t := range b.messages {
		var state string
		var pos int
		if err := tx.QueryRowContext(ctx, `SELECT state, bytes_read FROM harvest WHERE message = ?`, t.id).Scan(&state, &pos); err != nil {
			return fmt.Errorf("harvest: %w", err)
		}
		if state != "new" || pos != t.pos || texts[t.id] != t.text {
			return errChanged
		}
		state = "new"
		if t.excerptEnd >= len(t.ownWords) {
			state = "done"
		}
		if _, err := tx.ExecContext(ctx, `UPDATE harvest SET state = ?, bytes_read = ?, tries = 0, at = ? WHERE message = ?`,
			state, t.excerptEnd, now.UnixMilli(), t.id); err != nil {
			return fmt.Errorf("harvest: %w", err)
		}
	}
	return nil
}

func (b *batch) countFinished() (n int) {
	for _, t := range b.messages {
		if t.excerptEnd >= len(t.ownWords) {
			n++
		}
	}
	return n
}

// recordFailure counts a failed request against its messages, unless the model was unavailable. A
// message that fails alone is given up if others succeeded since its first failure: then the
// message is at fault, not the model.
func (h *Harvester) recordFailure(ctx context.Context, b batch, why error) (givenUp int, err error) {
	if modelUnavailable(why) {
		return 0, nil
	}
	now := h.cfg.Now().UnixMilli()
	for _, t := range b.messages {
		if _, err := h.cfg.DB.ExecContext(ctx, `UPDATE harvest SET tries = tries + 1, at = iif(at = 0 OR tries = 0, ?, at)
			WHERE message = ?`, now, t.id); err != nil {
			return 0, fmt.Errorf("harvest: %w", err)
		}
	}
	t := b.messages[0]
	if len(b.messages) > 1 || t.tries < maxSharedTries {
		return 0, nil
	}
	others, err := store.Value[int](ctx, h.cfg.DB, `SELECT count(*) FROM harvest AS o
		WHERE o.state = 'done' AND o.reason = '' AND o.at > (SELECT at FROM harvest WHERE message = ?)`, t.id)
	if err != nil || others == 0 {
		return 0, store.Wrap(err, "harvest")
	}
	h.log.Warn("message given up: no answer about it can be used", "room", b.room, "message", t.event, "err", why)
	return 1, h.markMessage(ctx, t.id, "left", why.Error())
}

// harvestable reports whether the prompt may contain words of m: of people their own, of the
// assistant untainted ones. level is the sender's.
func harvestable(m history.Message, level trust.Integrity) bool {
	switch m.Role {
	case llm.User:
		return m.Sender != "" && tool.AllowsAct(level, tool.Harvest)
	case llm.Assistant:
		return tool.AllowsAct(m.Label.Integrity, tool.Harvest)
	}
	return false
}

// ownWordsIntegrity returns how far a message's own words are trusted: as its sender, but as an
// owner only if the message was labelled so. Someone else may have written it in an owner's name.
func ownWordsIntegrity(sender, message trust.Integrity) trust.Integrity {
	return min(sender, max(message, trust.User))
}
