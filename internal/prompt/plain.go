package prompt

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What stands before a message says who speaks, so no text may look as if it began
// another one: neither of the program, as in
//
//	[Sat 2026-11-21 19:25 UTC, system event: scheduled task]
//
// nor of somebody else in the room. opens and closes know the brackets of such a header,
// for a model that sees no great difference between them.
func opens(r rune) bool {
	return r == '[' || r > unicode.MaxASCII && strings.ContainsRune("［【〔❲⟦〖", r)
}

func closes(r rune) bool {
	return r == ']' || r == '\n' || r > unicode.MaxASCII && strings.ContainsRune("］】〕❳⟧〗", r)
}

// eventRunes is how long a header can be that names a system event.
const eventRunes = 160

// noEvent changes the bracket of everything in s that looks like the header of a
// system event, so that it no longer does.
func noEvent(s string) string {
	var b strings.Builder
	done := 0
	for i, r := range s {
		if !opens(r) || !namesEvent(s[i+utf8.RuneLen(r):]) {
			continue
		}
		b.WriteString(s[done:i] + "(")
		done = i + utf8.RuneLen(r)
	}
	if done == 0 {
		return s
	}
	return b.String() + s[done:]
}

// namesEvent reports whether s says "system event" before a bracket closes, however
// it is written.
func namesEvent(s string) bool {
	letters, n := make([]rune, 0, eventRunes), 0
	for _, r := range s {
		if n++; n > eventRunes || closes(r) {
			break
		}
		if 'Ａ' <= r && r <= 'ｚ' {
			r -= 'Ａ' - 'A'
		}
		if unicode.IsLetter(r) {
			letters = append(letters, unicode.ToLower(r))
		}
	}
	return strings.Contains(string(letters), "systemevent")
}

var headerLike = regexp.MustCompile(`(?i)^[\p{Zs}\p{Cf}\t]*(?:mon|tue|wed|thu|fri|sat|sun)[\p{Zs}\p{Cf}\t]+[0-9]{4}-[0-9]{2}-[0-9]{2}`)

// plain is somebody's words as the model gets them: nothing in them looks like a
// header of ours.
func plain(s string) string {
	if !strings.ContainsFunc(s, opens) {
		return s
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		text := strings.TrimLeftFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
		open, size := utf8.DecodeRuneInString(text)
		if opens(open) && headerLike.MatchString(text[size:]) {
			b.WriteString(line[:len(line)-len(text)] + "(")
			line = text[size:]
		}
		b.WriteString(line)
	}
	return noEvent(b.String())
}
