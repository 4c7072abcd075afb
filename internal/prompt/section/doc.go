// Package section gathers what can stand in a prompt, each section in a file of its own.
// catalog.go is the map: every contributor in prompt order, with its heading, its place and
// what survives. Package prompt decides what of it a request holds.
//
// A contributor looks at a Turn and at its Sources, and answers with a Content: lines, and what
// is known of each. It reads and never writes.
//
// # Steering notes
//
// steering.go is a table of ten rules, each a pure function of the conversation: the same call
// again, errors in a row, something asked to be kept and not kept. At most three notes come with
// a message. Their words are in data/prompts/steering; people never see them.
package section
