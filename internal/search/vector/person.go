package vector

import (
	"regexp"
	"strings"

	"reverie/internal/chat"
	"reverie/internal/trust"
)

// form is part of the name of a space, because texts are embedded in another form than before: all vectors
// are computed again.
const form = "/i"

// Model is the name of the vectors: that of the embedder and the form in which it gets texts.
func (v *Vectors) Model() string { return v.embedder.Name() + form }

// inFirstPerson returns text as the person of scope would say it: with "I" in place of the name. Memories
// name the person, and the person asks "Have I …?", which is farther from "anna has" than from "I have" by
// half. Memories of other scopes are as they are.
func inFirstPerson(text string, scope trust.Readers) string {
	name := chat.ShortName(scope.Person())
	if name == "" || !strings.Contains(strings.ToLower(text), strings.ToLower(name)) {
		return text
	}
	name = `(?i)\b` + regexp.QuoteMeta(name)
	text = regexp.MustCompile(name+`['’]s\b`).ReplaceAllString(text, "my")
	return regexp.MustCompile(name+`\b`).ReplaceAllString(text, "I")
}
