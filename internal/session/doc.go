// Package session runs conversations: one goroutine per room or thread owns its history,
// runs its turns (prompt, model, tools, reply) and passes commands to package command.
//
// # Threads
//
// A thread is a conversation of its own: history, summary, prompt epoch and tier are the thread's;
// memory, tasks, the goal, the mode and settings are the room's. history.Timeline names a
// conversation. thread.go starts one with a summary of the room up to the thread's root. The
// transport decides in which thread a message is answered, when it arrives.
//
// # Approvals
//
// Calls that tool/catalog.go does not allow need a person's approval, see package approval. The calls,
// their placeholder results and the question are one transaction. Approved calls run once; a key made
// from the approval's code makes a repetition harmless.
//
// # Before a request
//
// Package window says how many tokens the model reads. The tier of a room's prompt is locked and changes
// only at boundaries. If the next request does not fit, package compaction shortens the conversation
// (compact.go), and the waiting person is told. The prompt's tail holds the task that the conversation
// works on, see package objective.
package session
