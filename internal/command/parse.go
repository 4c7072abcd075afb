package command

import (
	"regexp"
	"slices"
	"strings"

	"reverie/internal/chat"
)

var commandForm = regexp.MustCompile(`(?s)^([!/])([A-Za-z]+)(?:\s+(.*))?$`)

// Parse recognises "!name arguments", and with a "/" the names of commands: Matrix clients
// keep most of what begins with "/" for themselves.
func Parse(text string) (name, args string, ok bool) {
	m := commandForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", "", false
	}
	name = strings.ToLower(m[2])
	if _, known := named(name); m[1] == "/" && !known {
		return "", "", false
	}
	return name, strings.TrimSpace(m[3]), true
}

// named is the command name.
func named(name string) (entry, bool) {
	i := slices.IndexFunc(catalog(), func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return catalog()[i], true
}

// Branch is the thread that in is answered in, by the room's setting: where it was asked, always
// in a thread, which begins at the question, or never in one. A command outside of threads is about
// the room's own conversation, but for !retry, whose thread the transport knows.
func Branch(setting string, in chat.Message) string {
	switch {
	case setting == "off":
		return ""
	case in.Thread != "" || setting != "always":
		return in.Thread
	}
	if _, _, command := Parse(in.Text); command && !Retries(in.Text) {
		return ""
	}
	return in.ID
}

// Retries reports whether text asks for an answer once more.
func Retries(text string) bool {
	name, _, command := Parse(text)
	return command && name == "retry"
}

// Is reports whether a text is a command rather than a message.
func Is(text string) bool {
	_, _, command := Parse(text)
	return command
}
