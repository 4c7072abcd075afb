// Package prompt fills the model's window. Contributors gather the sections (package section), a
// layout orders them, a budget decides what stays, and a report says what became of each.
//
// In the stable layout a conversation is divided into epochs. Within an epoch, every request is the
// previous one plus new bytes at its end, so that a server with a prompt cache reads only these.
// The prefix is rendered once per epoch. New content travels in the tail of the newest message,
// which is stored as sent.
//
// # Layouts
//
// section/catalog.go lists the sections with their trust, place, shrinking and source. layout.go
// orders them. All layouts of conversations hold the same contributors. stable is append-only;
// classic, tiered, split, layered and phased rebuild the system text for each request; job,
// minimal, base_only and none are for scheduled jobs and sub-sessions.
//
// An epoch ends when a prompt file, the mode, a skill or a tool changes, when a memory line is
// edited or removed, at !new, when the history outgrows the window, and at most once a day to move
// new memories into the prefix. The log names the reason.
//
// # Budget
//
// fit is pure. Required sections and the newest turn stay, or an error says how much does not fit.
// Other sections give way by keep, shrunk before dropped; older turns are dropped in one batch.
// Contributors run concurrently; one that panics or takes longer than a second is omitted and
// reported.
//
// BASE_PROMPT.txt and the template for mode and tier share a budget of 200, 500, 1000, 1500, 1500
// tokens in tiers 1 to 5. The template is cut; the rules of BASE_PROMPT.txt never are.
package prompt
