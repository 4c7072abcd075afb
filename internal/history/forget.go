package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/store"
)

// forgottenText replaces forgotten texts.
const forgottenText = "[forgotten]"

// Forget removes texts from everything except people's own words, in tx: from answers, tool calls
// and their results, system events, and tails. It returns how many messages of people hold one of
// them.
func (s *Store) Forget(ctx context.Context, tx *sql.Tx, texts []string) (stillQuoted int, err error) {
	for _, t := range texts {
		if t == "" {
			continue
		}
		if err := replaceIn(ctx, tx, `role <> 'user' OR sender = ''`, t, forgottenText); err != nil {
			return 0, store.Wrap(err, "forget in the transcript")
		}
		n, err := store.Value[int](ctx, tx, `SELECT count(*) FROM message WHERE role = 'user' AND sender <> '' AND instr(text, ?) > 0`, t)
		if err != nil {
			return 0, store.Wrap(err, "forget in the transcript")
		}
		stillQuoted += n
	}
	if err := rewriteQuotes(ctx, tx, "", func(q *Quoted) bool { return q.removeTexts(texts) }); err != nil {
		return 0, err
	}
	forget := eachItem(func(c *llm.ToolCall) bool { return forgetArguments(c, texts) })
	return stillQuoted, rewrite(ctx, tx, `message`, `calls`, forget, `calls <> ''`)
}

// redactedText replaces the text of redacted messages.
const redactedText = "[taken back]"

// Redact empties the message event of a person, with its tail. It does so wherever the message is
// stored or quoted. An unknown event is not an error.
func (s *Store) Redact(ctx context.Context, event string) error {
	if event == "" {
		return nil
	}
	return store.Wrap(store.InTx(ctx, s.db, func(tx *sql.Tx) error { return redact(ctx, tx, event) }), "redact a message")
}

func redact(ctx context.Context, tx *sql.Tx, event string) error {
	if err := redactThreadRoot(ctx, tx, event); err != nil {
		return err
	}
	if err := rewriteQuotes(ctx, tx, event, func(q *Quoted) bool { return q.redact(event) }); err != nil {
		return err
	}
	var words string
	ok, err := store.Found(tx.QueryRowContext(ctx, `SELECT text FROM message WHERE `+fromPerson, event).Scan(&words))
	if !ok {
		return err
	}
	if err := redactDerived(ctx, tx, event, words); err != nil {
		return err
	}
	empty := `UPDATE message SET text = ?2, tail = '', quoted = '', files = '' WHERE ` + fromPerson
	return execAll(ctx, tx, statement{empty, []any{event, redactedText}})
}

// rewrite applies change to column in the rows of table selected by where.
func rewrite(ctx context.Context, db store.DBTX, table, column string, change func(string) (string, error),
	where string, args ...any,
) error {
	changed := map[int64]string{}
	err := store.Each(ctx, db, func(row store.Row) error {
		var id int64
		var was string
		if err := row.Scan(&id, &was); err != nil {
			return err
		}
		now, err := change(was)
		if now != was {
			changed[id] = now
		}
		return err
	}, `SELECT id, `+column+` FROM `+table+` WHERE `+where, args...)
	for id, now := range changed {
		if err == nil {
			err = execAll(ctx, db, statement{`UPDATE ` + table + ` SET ` + column + ` = ? WHERE id = ?`, []any{now, id}})
		}
	}
	return store.Wrap(err, "change %s", column)
}

// eachItem lifts change to a JSON list of items. change reports whether it changed its item.
func eachItem[T any](change func(*T) bool) func(string) (string, error) {
	return func(was string) (string, error) {
		var all []T
		if err := json.Unmarshal([]byte(was), &all); err != nil {
			return was, err
		}
		touched := false
		for i := range all {
			touched = change(&all[i]) || touched
		}
		if !touched {
			return was, nil
		}
		b, err := json.Marshal(all)
		return string(b), err
	}
}

// forgetArguments empties the arguments of a call if they contain one of texts.
func forgetArguments(call *llm.ToolCall, texts []string) bool {
	var args any
	if json.Unmarshal([]byte(call.Arguments), &args) != nil {
		args = call.Arguments
	}
	said := normalise(strings.Join(stringsIn(args), "\n"))
	found := slices.ContainsFunc(texts, func(t string) bool { return t != "" && strings.Contains(said, normalise(t)) })
	if found {
		call.Arguments = `{"entry":"` + forgottenText + `"}`
	}
	return found
}

// normalise folds case and white space, which models do not reproduce exactly.
func normalise(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

func stringsIn(v any) []string {
	var all []string
	switch v := v.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, e := range v {
			all = append(all, stringsIn(e)...)
		}
	case map[string]any:
		for _, e := range v {
			all = append(all, stringsIn(e)...)
		}
	}
	return all
}

// IsRedacted reports whether m was redacted: by its sender, or, for an answer, with its question or
// by a member of the room.
func IsRedacted(m Message) bool {
	return (m.Role == llm.User || m.Role == llm.Assistant) && m.Text == redactedText
}

// RemoveQuotes removes quotes of redacted messages from tails and tool results.
func (s *Store) RemoveQuotes(ctx context.Context, quotes []string) error {
	for _, q := range quotes {
		if strings.TrimSpace(q) == "" {
			continue
		}
		if err := replaceIn(ctx, s.db, `role = 'tool'`, q, " "+redactedText); err != nil {
			return store.Wrap(err, "redact quotes of a message")
		}
	}
	return nil
}

// The text of a message also occurs in its short form, and in the summary and details that replace
// it. Forgetting and redacting remove it there, too.

// replaceIn replaces text by by: in the messages selected by where, in all tails and summaries, and
// in the short forms of messages that people did not write.
func replaceIn(ctx context.Context, db store.DBTX, where, text, by string) error {
	both := []any{text, by}
	return execAll(ctx, db,
		statement{`UPDATE message SET text = replace(text, ?1, ?2) WHERE (` + where + `) AND instr(text, ?1) > 0`, both},
		statement{`UPDATE message SET tail = replace(tail, ?1, ?2) WHERE instr(tail, ?1) > 0`, both},
		statement{`UPDATE message SET short = replace(short, ?1, ?2) WHERE role <> 'user' AND instr(short, ?1) > 0`, both},
		statement{`UPDATE compaction SET summary = replace(summary, ?1, ?2) WHERE instr(summary, ?1) > 0`, both},
		statement{`UPDATE compaction SET details = replace(details, ?1, ?2) WHERE instr(details, ?1) > 0`, both})
}

// redactDerived removes text of the message event from its short form. It removes lines that repeat
// text from summaries.
func redactDerived(ctx context.Context, db store.DBTX, event, text string) error {
	query := `UPDATE message SET short = '' WHERE event_id = ? AND event_id <> '' AND role = 'user'`
	if err := store.Exec(ctx, db, query, event); err != nil {
		return err
	}
	return removeFromSummaries(ctx, db, `room IN (WITH own AS (SELECT room FROM message WHERE event_id = ?1 AND event_id <> '')
		SELECT room FROM own UNION SELECT id FROM room WHERE thread_of IN own)`, event, text)
}

// removeFromSummaries removes lines that repeat text from summaries. where selects the summaries,
// and arg is its parameter.
func removeFromSummaries(ctx context.Context, db store.DBTX, where string, arg any, text string) error {
	without := func(was string) (string, error) { return removeRepeatedLines(was, text), nil }
	return errors.Join(rewrite(ctx, db, `compaction`, `summary`, without, where, arg),
		rewrite(ctx, db, `compaction`, `details`, without, where, arg))
}

// removeRepeatedLines removes lines from text that repeat part of said. They may have a speaker and
// may be truncated. Very short lines stay.
func removeRepeatedLines(text, said string) string {
	said = normalise(said)
	var remaining []string
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.TrimLeft(line, "-*• ")
		if who, rest, ok := strings.Cut(words, ": "); ok && !strings.Contains(who, " ") {
			words = rest
		}
		words = normalise(strings.TrimSuffix(strings.TrimSpace(words), "…"))
		if len(words) >= minRepeated && strings.Contains(said, words) {
			continue
		}
		remaining = append(remaining, line)
	}
	return strings.Join(remaining, "\n")
}

const minRepeated = 6 // bytes

// Quoted is a message that another message quotes. It is data, not part of the conversation.
type Quoted struct {
	Event string `json:"event,omitempty"` // the transport's id; may be empty
	Text  string `json:"text"`            // as the model reads it: sender, then text
}

// Quotes is the text of all quotes of m, as the model reads it.
func (m *Message) Quotes() string {
	return strings.Join(store.Map(m.Quoted, func(q Quoted) string { return q.Text }), "\n")
}

// redact empties q if it quotes event, and reports whether it did.
func (q *Quoted) redact(event string) bool {
	if q.Event != event || q.Text == redactedText {
		return false
	}
	q.Text = redactedText
	return true
}

// removeTexts removes texts from q, and reports whether it contained one.
func (q *Quoted) removeTexts(texts []string) (changed bool) {
	for _, t := range texts {
		if t != "" && strings.Contains(q.Text, t) {
			q.Text, changed = strings.ReplaceAll(q.Text, t, forgottenText), true
		}
	}
	return changed
}

// rewriteQuotes applies change to the quotes of messages whose quotes contain needle.
func rewriteQuotes(ctx context.Context, tx *sql.Tx, needle string, change func(*Quoted) bool) error {
	return rewrite(ctx, tx, `message`, `quoted`, eachItem(change), `quoted <> '' AND instr(quoted, ?) > 0`, needle)
}
