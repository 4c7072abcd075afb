// Package dream puts memory, the tasks and the skills in order while nobody talks. A night reads
// what was said since (package harvest), plans, keeps a copy, does all of it in one
// transaction, and says what it did. No memory is ever changed in its words or removed; whatever a
// model says, what holds stays known, and all of it can be taken back.
//
// # A night
//
// plan.go makes steps, memory.Store.Apply does them in one transaction, each checked again, none
// changing a text or removing a row. Each part of the plan is a function of the memories as the part
// before leaves them (memories.after), and returns steps. Same words are merged without a model. A
// model labels pairs that the structure has picked. The same in other words: the fuller text is shown
// for both (mayStand), and the other stays active as its member. A newer text about the same that has a
// word of change and a word in common (corrections.go): the older is superseded.
// Everything else that the model claims is a question to the person, so a model that errs or lies
// costs a question and no fact. `make survival` measures it.
//
// Before the plan is applied a copy of the database is kept (dreams/RUN.db, seven of them). UndoRun
// restores a whole night. Nightly works out what is due from the last night that was completed.
//
// Whether a task is done, or asks for the same as another, is a question; tasks of the same words
// are merged, and one that was not touched for 90 days is paused. Skills that
// are alike are told of.
package dream
