// Package session owns conversations: one goroutine per room or thread keeps its history,
// runs its turns (prompt, model, tools, reply) and hands commands to package command.
//
// # Threads
//
// A thread is a conversation of its own: history, summary, prompt epoch and tier are the thread's;
// memory, tasks, the goal, the mode and settings are the room's. history.Timeline names a
// conversation; branch.go starts one with what was said up to the thread's root. In which
// thread a message is answered is settled when it comes.
//
// # Approvals
//
// What tool/catalog.go does not allow is asked, see package approval: the calls, their placeholder
// results and the question are one transaction. The acts run once, named after the approval.
//
// # Compaction
//
// The assembler is asked whether the next request fits. If not, package compaction shortens the conversation
// (compact.go), and the person who waits is told.
//
// # The window
//
// Package window says how many tokens the model reads. The tier of a room's prompt is locked, and
// changes at boundaries only: a new conversation, another model, a compaction.
//
// # The task in focus
//
// The task that the conversation works on stands in the tail of the prompt, see package
// objective. When nobody has said anything for a while, a model may be asked for it.
package session
