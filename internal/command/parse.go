package command

import (
	"regexp"
	"slices"
	"strings"

	"reverie/internal/chat"
)

var commandPattern = regexp.MustCompile(`(?s)^([!/])([A-Za-z]+)(?:\s+(.*))?$`)

// Parse parses "!name arguments". With "/" it accepts only known names, because Matrix clients handle
// most "/" commands themselves.
func Parse(text string) (name, args string, ok bool) {
	m := commandPattern.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", "", false
	}
	name = strings.ToLower(m[2])
	if _, known := lookup(name); m[1] == "/" && !known {
		return "", "", false
	}
	return name, strings.TrimSpace(m[3]), true
}

// lookup finds the command name.
func lookup(name string) (entry, bool) {
	i := slices.IndexFunc(catalog(), func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return catalog()[i], true
}

// AnswerThread returns the thread in which in is answered, by the room's setting: "off" never a thread,
// "always" one that starts at the question, else where it was asked. A command outside of threads gets
// no thread, except !retry, whose thread the transport knows.
func AnswerThread(setting string, in chat.Message) string {
	switch {
	case setting == "off":
		return ""
	case in.Thread != "" || setting != "always":
		return in.Thread
	}
	if _, _, command := Parse(in.Text); command && !IsRetry(in.Text) {
		return ""
	}
	return in.ID
}

// IsRetry reports whether text is the command !retry.
func IsRetry(text string) bool {
	name, _, command := Parse(text)
	return command && name == "retry"
}

// Is reports whether text is a command.
func Is(text string) bool {
	_, _, command := Parse(text)
	return command
}
