// Package prompt fills the model's window: contributors gather what belongs into
// a prompt (package section), a layout says where it stands, a budget what stays, and
// a report what became of it.
//
// In the stable layout a conversation is cut into epochs. Within one, every
// request is the request before plus new bytes at its end, so that a server that
// keeps its last prompt has little to read: the prefix is rendered once, and what
// is new travels in the tail of the newest message, which stays as it was sent.
//
// # Layouts
//
// section/catalog.go says what can stand in a prompt, whose words it is, where it stands, how it
// gives way and what gathers it. layout.go says in which order the layouts have it. All layouts of
// conversations hold the same contributors. stable is append-only; classic, tiered, split, layered
// and phased rebuild the system text for each inference; job, minimal, base_only and none are for
// scheduled jobs and sub-sessions.
//
// An epoch ends when a prompt file, the mode, a skill or a tool changes, when a memory line is
// changed or removed by hand, at !new, when the history outgrows the window, and at most once a
// day to move new memories into the prefix. The log tells why each began.
//
// # What gives way
//
// fit is pure: required sections and the newest turn stay, or an error says how much is too much;
// the others give way by keep, shrunk before dropped; older turns go in one batch. Contributors
// are asked at once; one that panics or takes longer than a second is left out and reported.
//
// BASE_PROMPT.txt and the template for mode and tier share a budget of 200, 500, 1000, 1500, 1500
// tokens in tiers 1 to 5. The template is cut; the rules of BASE_PROMPT.txt never are.
package prompt
