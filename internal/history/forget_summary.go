package history

import (
	"context"
	"errors"
	"strings"

	"reverie/internal/store"
)

// The words of a message also stand in the short form it is sent in, in the summary that
// stands for it, and beside that. What is forgotten or taken back leaves those too.

// replaceIn replaces text in the words of the messages for which where holds, in what prompts
// added to messages, in the short forms of what people did not write, and in summaries.
func replaceIn(ctx context.Context, db store.DBTX, where, text, by string) error {
	both := []any{text, by}
	return run(ctx, db,
		statement{`UPDATE message SET text = replace(text, ?1, ?2) WHERE (` + where + `) AND instr(text, ?1) > 0`, both},
		statement{`UPDATE message SET tail = replace(tail, ?1, ?2) WHERE instr(tail, ?1) > 0`, both},
		statement{`UPDATE message SET short = replace(short, ?1, ?2) WHERE role <> 'user' AND instr(short, ?1) > 0`, both},
		statement{`UPDATE compaction SET summary = replace(summary, ?1, ?2) WHERE instr(summary, ?1) > 0`, both},
		statement{`UPDATE compaction SET details = replace(details, ?1, ?2) WHERE instr(details, ?1) > 0`, both})
}

// redactShort empties what else there is of the words of the message event, which said
// text: its short forms, and the lines of summaries that repeat it word for word.
func redactShort(ctx context.Context, db store.DBTX, event, text string) error {
	if err := run(ctx, db, statement{`UPDATE message SET short = '' WHERE event_id = ? AND role = 'user'`, []any{event}}); err != nil {
		return err
	}
	return withoutWords(ctx, db, `room IN (SELECT room FROM message WHERE event_id = ?1)
		OR room IN (SELECT id FROM room WHERE branch_of IN (SELECT room FROM message WHERE event_id = ?1))`, event, text)
}

// withoutWords takes the lines that repeat text out of the summaries where holds for, with
// arg as its parameter.
func withoutWords(ctx context.Context, db store.DBTX, where string, arg any, text string) error {
	without := func(was string) (string, error) { return withoutLines(was, text), nil }
	return errors.Join(rewrite(ctx, db, `compaction`, `summary`, without, where, arg), rewrite(ctx, db, `compaction`, `details`, without, where, arg))
}

// withoutLines is text without the lines that repeat words of said, with or without
// who said them, whole or cut. Lines of a word or two repeat nothing.
func withoutLines(text, said string) string {
	said = loose(said)
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.TrimLeft(line, "-*• ")
		if who, rest, ok := strings.Cut(words, ": "); ok && !strings.Contains(who, " ") {
			words = rest
		}
		words = loose(strings.TrimSuffix(strings.TrimSpace(words), "…"))
		if len(words) >= leastRepeated && strings.Contains(said, words) {
			continue
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

const leastRepeated = 6 // bytes
