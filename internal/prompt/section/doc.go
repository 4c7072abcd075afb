// Package section gathers the sections of a prompt, each in a file of its own. catalog.go is the
// map: every contributor in prompt order, with heading, place and priority. Package prompt decides
// what of it a request holds.
//
// A contributor reads a Turn and Sources, and returns a Content: lines with their identity and
// integrity. It never writes.
//
// # Steering notes
//
// steering.go is a table of rules, each a pure function of the conversation: repeated calls, errors
// in a row, a request to remember that was not fulfilled. A message gets at most three notes. Their
// texts are in data/prompts/steering; people never see them.
package section
