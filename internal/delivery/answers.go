package delivery

import (
	"context"

	"reverie/internal/store"
)

// The table answered relates answers to questions. A row is written with the answer and never
// deleted. An answer to several messages has several rows, as has a message with several answers.

// RecordAnswer records that the message reply answers question. db may be the transaction that
// stores the reply.
func RecordAnswer(ctx context.Context, db store.DBTX, question, reply string) error {
	return store.Exec(ctx, db, `INSERT INTO question_reply (question, reply) VALUES (?, ?) ON CONFLICT DO NOTHING`, question, reply)
}

// RepliesTo lists the replies to the message question, the newest last.
func RepliesTo(ctx context.Context, db store.DBTX, question string) ([]string, error) {
	return store.Column[string](ctx, db, `SELECT reply FROM question_reply WHERE question = ? ORDER BY seq`, question)
}

// QuestionsOf lists the messages that reply answers, in the order they were written.
func QuestionsOf(ctx context.Context, db store.DBTX, reply string) ([]string, error) {
	return store.Column[string](ctx, db, `SELECT question FROM question_reply WHERE reply = ? ORDER BY seq`, reply)
}
