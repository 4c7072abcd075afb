// Package dream tidies memories and tasks while the rooms are quiet. A night reads new
// messages (package harvest), plans, copies the database, applies the plan in one transaction and
// reports. It never edits or deletes the text of a memory. Whatever a model says, true facts stay
// active, and every night can be undone.
//
// # A night
//
// plan.go makes steps; memory.Store.Apply checks each again and applies all in one transaction. Each
// part of the plan takes the memories as the part before leaves them (memories.after).
//
//   - Entries of the same words are merged without a model.
//   - Paraphrases are grouped if a model agrees: the fuller text is shown for both (mayRepresent), and
//     the other stays active as its member.
//   - An older entry is superseded if a model says so and the texts bear it out: one subject, a shared
//     topic, another answer and a word of change (corrections.go).
//   - Everything else that a model claims becomes a question to the person. A wrong or hostile model
//     costs a question, never a fact. `make survival` measures it.
//
// The last seven copies of the database are kept as dreams/RUN.db. UndoRun reverts a whole night.
// Nightly derives the next night from the last completed one.
//
// Tasks of the same words are merged, and tasks untouched for 90 days are paused. Whether a task is
// done, or is the same as another, is a question.
package dream
