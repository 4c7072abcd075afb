package skill

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"reverie/internal/trust"
)

// The keys of front matter that the program writes and nobody else needs to.
const (
	integrityKey = "integrity"
	ownerKey     = "written_by"
)

var labelKeys = []string{integrityKey, ownerKey}

// readLabel reads the keys that say whose words the skill is. A skill without them was written
// by hand. What cannot be read makes it foreign.
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

// strayLabel makes the skill foreign if a key of its label stands in text, which is no front
// matter that can be read: an edit may have broken what the program had written.
func (h *head) strayLabel(text []byte) {
	if at := strayKey.FindIndex(text); at != nil {
		h.distrust(1+bytes.Count(text[:at[0]], []byte("\n")), "integrity and written_by count only in front matter that can be read")
	}
}

func (h *head) distrust(line int, why string) {
	h.integrity, h.owner = trust.Foreign, ""
	h.say(line, "%s: the skill counts as foreign text until then", why)
}

// compose makes a skill's text: the keys of its label, other lines of front matter, and body.
func compose(integrity trust.Integrity, owner string, front, body []byte) []byte {
	keys := integrityKey + ": " + integrity.String() + "\n"
	if owner != "" {
		keys += ownerKey + ": " + strconv.Quote(owner) + "\n"
	}
	return slices.Concat([]byte(fence+"\n"+keys), front, []byte(fence+"\n"), body)
}

// relabel is text with another integrity; everything else in it stays. It is false if the
// front matter cannot be changed by a program.
func relabel(text []byte, integrity trust.Integrity) ([]byte, bool) {
	was := readHead(text)
	_, body := frontOf(text)
	out := compose(integrity, was.owner, frontLines(text, labelKeys...), body)
	now := readHead(out)
	return out, now.integrity == integrity && now.owner == was.owner && now.summary == was.summary && len(now.faults) <= len(was.faults)
}
