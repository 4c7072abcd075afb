package skill

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"reverie/internal/trust"
)

// Keys of front matter that the program writes.
const (
	integrityKey = "integrity"
	ownerKey     = "written_by"
)

var labelKeys = []string{integrityKey, ownerKey}

// readLabel reads the label keys. Without them the skill was written by hand; invalid ones make it foreign.
func (h *head) readLabel(fields *yaml.Node, line int) {
	seen := map[string]string{}
	for i := 0; i+1 < len(fields.Content); i += 2 {
		key, value := fields.Content[i], fields.Content[i+1]
		if key.Kind != yaml.ScalarNode || !slices.Contains(labelKeys, key.Value) {
			continue
		}
		if _, again := seen[key.Value]; again || value.Kind != yaml.ScalarNode || value.Value == "" {
			h.distrust(line+key.Line, key.Value+" must stand there once, with one value")
			return
		}
		seen[key.Value] = value.Value
	}
	if len(seen) == 0 {
		return
	}
	for _, level := range []trust.Integrity{trust.Foreign, trust.Guest, trust.User, trust.Owner} {
		if seen[integrityKey] == level.String() {
			h.integrity, h.owner = level, seen[ownerKey]
			return
		}
	}
	h.distrust(line, "integrity must be owner, user, guest or foreign; leave it and written_by out of what you wrote yourself")
}

var strayKey = regexp.MustCompile(`(?m)^[ \t]*(integrity: *(owner|user|guest|foreign)|written_by:.*)[ \t\r]*$`)

// checkStrayLabel makes the skill foreign if text has a label key. text is no valid front matter.
// An edit may have broken the program's own.
func (h *head) checkStrayLabel(text []byte) {
	if at := strayKey.FindIndex(text); at != nil {
		h.distrust(1+bytes.Count(text[:at[0]], []byte("\n")), "integrity and written_by count only in front matter that can be read")
	}
}

func (h *head) distrust(line int, why string) {
	h.integrity, h.owner = trust.Foreign, ""
	h.addFault(line, "%s: the skill counts as foreign text until then", why)
}

// composeFile returns the text of a skill file: label keys, other lines of front matter, and body.
func composeFile(integrity trust.Integrity, owner string, front, body []byte) []byte {
	keys := integrityKey + ": " + integrity.String() + "\n"
	if owner != "" {
		keys += ownerKey + ": " + strconv.Quote(owner) + "\n"
	}
	return slices.Concat([]byte(fence+"\n"+keys), front, []byte(fence+"\n"), body)
}

// relabel returns text with another integrity and no other change; false if its front matter cannot be edited.
func relabel(text []byte, integrity trust.Integrity) ([]byte, bool) {
	was := readHead(text)
	_, body := splitValidFront(text)
	out := composeFile(integrity, was.owner, frontLinesWithout(text, labelKeys...), body)
	now := readHead(out)
	return out, now.integrity == integrity && now.owner == was.owner && now.summary == was.summary && len(now.faults) <= len(was.faults)
}
