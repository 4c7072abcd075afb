package harvest

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/llm/template"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

const (
	mostMessages  = 40    // messages in one request: what is asked of a model at once must not be too much for it
	mostTokens    = 6_000 // of messages in one request, however large the window is
	leastTokens   = 150   // tokens for messages; with less there is no use in asking
	triesTogether = 3     // of a message with others, before it is tried alone
)

// waiting is a conversation with messages to be read: a room's, or that of a thread in it.
type waiting struct {
	room     string
	messages int
	heard    time.Time // when somebody said something there last
}

func (h *Harvester) waiting(ctx context.Context) (all []waiting, err error) {
	ids, err := store.Column[int64](ctx, h.cfg.DB, `SELECT message FROM harvest WHERE state = 'new'`)
	if err != nil || len(ids) == 0 {
		return nil, store.Wrap(err, "harvest: look for conversations to read")
	}
	shares, err := history.Shares(ctx, h.cfg.DB, ids)
	for _, s := range shares {
		w := waiting{room: string(s.Room), messages: s.Messages, heard: s.Last}
		if at, failed := h.cfg.Heard(ctx, s.Room.Room()); failed != nil {
			return nil, store.Wrap(failed, "harvest: look for conversations to read")
		} else if !at.IsZero() {
			w.heard = at
		}
		all = append(all, w)
	}
	return all, store.Wrap(err, "harvest: look for conversations to read")
}

// turn is a message of a person that is to be read.
type turn struct {
	id     int64
	tries  int
	pos    int // read so far, in own
	event  string
	sender string
	scope  memory.Scope
	level  trust.Integrity // of its sender
	text   string          // as stored
	own    string          // of it, the sender's own words
	tail   string          // what the prompt added to it: recalled memories, too
	asked  string          // the question that it may answer
	at     time.Time
	known  []memory.Entry // learned from it already

	part string // what of own goes into the request
	end  int    // where that ends in own
}

// batch is what goes into one request: messages of one room that belong to one scope.
type batch struct {
	room    string
	turns   []turn
	prompt  string
	skipped int // messages that are not to be read, and are marked so
}

// next makes the next request for a room, of the oldest messages that were not read yet,
// and marks those that are not to be read at all.
func (h *Harvester) next(ctx context.Context, room string, smaller int) (batch, error) {
	b := batch{room: room}
	all, err := h.unread(ctx, room)
	if err != nil || len(all) == 0 {
		return b, err
	}
	form := Template.Load(h.cfg.Prompts, h.cfg.Default, h.log)
	window, answer := h.cfg.Window(role)
	space := window - answer - llm.EstimateTokens(form)
	space = min(space-space/10, mostTokens) // estimates err
	if space < leastTokens {
		return b, fmt.Errorf("the window of %d tokens, %d of them for the answer, has no room for messages beside the template",
			window, answer)
	}
	var transcript strings.Builder
	most := 1
	for i := range all {
		t := &all[i]
		why, err := h.notToRead(ctx, t)
		if err != nil {
			return b, err
		}
		if why != "" {
			if err := h.mark(ctx, t.id, "done", why); err != nil {
				return b, err
			}
			b.skipped++
			continue
		}
		if len(b.turns) == 0 {
			if most = mostMessages >> min(t.tries+smaller, 10); t.tries >= triesTogether {
				most = 1
			}
		} else if t.scope != b.turns[0].scope || t.tries >= triesTogether {
			break
		}
		if t.asked, err = h.question(ctx, room, t); err != nil {
			return b, err
		}
		line, fits := h.line(len(b.turns)+1, t, space)
		if !fits && len(b.turns) > 0 {
			break
		}
		space -= llm.EstimateTokens(line)
		transcript.WriteString(line)
		b.turns = append(b.turns, *t)
		if len(b.turns) >= max(most, 1) || !fits {
			break
		}
	}
	b.prompt = template.Fill(form, "{transcript}", strings.TrimRight(transcript.String(), "\n"))
	return b, nil
}

// unread lists the messages of a conversation to be read, the oldest first; those that failed alone last.
func (h *Harvester) unread(ctx context.Context, room string) (all []turn, err error) {
	const most = 200
	read := map[int64]turn{}
	var ids []int64
	err = store.Each(ctx, h.cfg.DB, func(row store.Row) error {
		var t turn
		err := row.Scan(&t.id, &t.tries, &t.pos)
		ids, read[t.id] = append(ids, t.id), t
		return err
	}, `SELECT message, tries, pos FROM harvest WHERE state = 'new' ORDER BY tries > ?, message`, triesTogether)
	if err != nil || len(ids) == 0 {
		return nil, store.Wrap(err, "harvest: read messages")
	}
	of := history.Filter{IDs: ids, Rooms: []history.Talk{history.Talk(room)}, Most: most}
	err = history.Each(ctx, h.cfg.DB, of, func(m history.Message) error {
		t := read[m.ID]
		t.event, t.sender, t.scope, t.text, t.tail, t.at = m.EventID, m.Sender, m.Label.Readers, m.Text, m.Tail, m.At
		t.own, t.level = OwnWords(m.Text), levelOf(h.cfg.Level(m.Sender), m.Label.Integrity)
		all = append(all, t)
		return nil
	})
	return all, store.Wrap(err, "harvest: read messages")
}

// question is what the assistant asked right before the message t, if t may be an answer to it.
func (h *Harvester) question(ctx context.Context, room string, t *turn) (question string, err error) {
	before := history.Filter{Rooms: []history.Talk{history.Talk(room)}, Before: t.id, Newest: true, Most: 1}
	err = history.Each(ctx, h.cfg.DB, before, func(m history.Message) error {
		if len(m.Calls) == 0 && m.Label.Readers == t.scope && harvestable(m, trust.Foreign) {
			question = lastQuestion(m.Text)
		}
		return nil
	})
	return question, store.Wrap(err, "harvest: read the question before a message")
}

// Why a message is not read.
const (
	notTrusted = "its sender is not one to learn from"
	notOwn     = "it has no words of its sender"
	notAnyMore = "it was taken back, or something learned from it was"
)

// notToRead says why a message is not to be read, or "", and fills in what is known from it.
func (h *Harvester) notToRead(ctx context.Context, t *turn) (string, error) {
	switch {
	case t.scope.Check() != nil || !harvestable(history.Message{Role: llm.User, Sender: t.sender}, t.level):
		return notTrusted, nil
	case history.TakenBack(history.Message{Role: llm.User, Text: strings.TrimSpace(t.text)}):
		return notAnyMore, nil
	case t.pos >= len(t.own) || !strings.ContainsFunc(t.own, isWordRune):
		return notOwn, nil
	}
	known, gone, err := h.cfg.Store.From(ctx, t.scope, t.event)
	if gone {
		return notAnyMore, err
	}
	// What was noted of the message as foreign text may be learned from the person's own words.
	t.known = slices.DeleteFunc(known, func(e memory.Entry) bool { return e.Integrity < trust.User })
	return "", err
}

// line is a message as it stands in a request, with as much of it as goes into so many
// tokens; fits tells whether that is all.
func (h *Harvester) line(number int, t *turn, tokens int) (line string, fits bool) {
	lead := ""
	if t.asked != "" {
		lead = "    (the question before it: " + t.asked + ")\n"
	}
	lead += "[" + strconv.Itoa(number) + "] " + t.at.In(h.cfg.Location).Format("2006-01-02 15:04") + " " + ShortName(t.sender) + ": "
	rest := t.own[t.pos:]
	t.part, t.end, fits = rest, len(t.own), true
	if space := tokens - llm.EstimateTokens(lead) - 2; llm.EstimateTokens(rest) > space {
		if number > 1 { // the next request has more room
			return "", false
		}
		t.part = firstPart(rest, max(space, leastTokens/3))
		t.end, fits = t.pos+len(t.part), len(t.part) == len(rest)
	}
	return lead + strings.ReplaceAll(strings.TrimSpace(t.part), "\n", "\n    ") + "\n", fits
}

// firstPart is the beginning of text in at most so many tokens, to the end of a
// paragraph, a sentence or a word if there is one in its second half.
func firstPart(text string, tokens int) string {
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

// mark sets what became of a message that was not read.
func (h *Harvester) mark(ctx context.Context, id int64, state, reason string) error {
	_, err := h.cfg.DB.ExecContext(ctx, `UPDATE harvest SET state = ?, reason = ?, at = ? WHERE message = ? AND state = 'new'`,
		state, reason, h.cfg.Now().UnixMilli(), id)
	return store.Wrap(err, "harvest: mark a message")
}

// read notes in tx that the messages of b were read, as far as they were in the request.
// It is errMoved if one of them is not as it was.
func (b *batch) read(ctx context.Context, tx *sql.Tx, now time.Time) error {
	texts := map[int64]string{}
	ids := make([]int64, len(b.turns))
	for i, t := range b.turns {
		ids[i] = t.id
	}
	err := history.Each(ctx, tx, history.Filter{IDs: ids}, func(m history.Message) error {
		texts[m.ID] = m.Text
		return nil
	})
	if err != nil {
		return store.Wrap(err, "harvest: look at messages once more")
	}
	for _, t := range b.turns {
		var state string
		var pos int
		if err := tx.QueryRowContext(ctx, `SELECT state, pos FROM harvest WHERE message = ?`, t.id).Scan(&state, &pos); err != nil {
			return fmt.Errorf("harvest: %w", err)
		}
		if state != "new" || pos != t.pos || texts[t.id] != t.text {
			return errMoved
		}
		state = "new"
		if t.end >= len(t.own) {
			state = "done"
		}
		if _, err := tx.ExecContext(ctx, `UPDATE harvest SET state = ?, pos = ?, tries = 0, at = ? WHERE message = ?`,
			state, t.end, now.UnixMilli(), t.id); err != nil {
			return fmt.Errorf("harvest: %w", err)
		}
	}
	return nil
}

// ended counts the messages that are read to their end.
func (b *batch) ended() (n int) {
	for _, t := range b.turns {
		if t.end >= len(t.own) {
			n++
		}
	}
	return n
}

// failed counts a request that came to nothing, unless the model could not be asked at
// all. A message that fails alone is given up if others were read since it failed first: then
// it is the message, and not the model.
func (h *Harvester) failed(ctx context.Context, b batch, why error) (left int, err error) {
	if blameless(why) {
		return 0, nil
	}
	now := h.cfg.Now().UnixMilli()
	for _, t := range b.turns {
		if _, err := h.cfg.DB.ExecContext(ctx, `UPDATE harvest SET tries = tries + 1, at = iif(at = 0 OR tries = 0, ?, at)
			WHERE message = ?`, now, t.id); err != nil {
			return 0, fmt.Errorf("harvest: %w", err)
		}
	}
	t := b.turns[0]
	if len(b.turns) > 1 || t.tries < triesTogether {
		return 0, nil
	}
	others, err := store.Value[int](ctx, h.cfg.DB, `SELECT count(*) FROM harvest AS o
		WHERE o.state = 'done' AND o.reason = '' AND o.at > (SELECT at FROM harvest WHERE message = ?)`, t.id)
	if err != nil || others == 0 {
		return 0, store.Wrap(err, "harvest")
	}
	h.log.Warn("a message is not harvested: no answer about it can be used", "room", b.room, "message", t.event, "err", why)
	return 1, h.mark(ctx, t.id, "left", why.Error())
}

// harvestable reports whether the request that asks for facts may show words of m. Of people
// these are their own words, whatever came with them; level is that of the sender.
func harvestable(m history.Message, level trust.Integrity) bool {
	switch m.Role {
	case llm.User:
		return m.Sender != "" && tool.AllowsAct(level, tool.Harvest)
	case llm.Assistant:
		return tool.AllowsAct(m.Label.Integrity, tool.Harvest)
	}
	return false
}

// levelOf is how far the own words of a message are trusted: as its sender, but as an owner only
// when the message was an owner's. Others may have written it in an owner's name.
func levelOf(sender, message trust.Integrity) trust.Integrity {
	return min(sender, max(message, trust.User))
}
