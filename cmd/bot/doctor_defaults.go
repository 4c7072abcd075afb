package main

import (
	"strings"

	reverie "reverie"
	"reverie/internal/store"
)

// examineDefaults says which default files their owner edited, and which stand elsewhere
// than earlier releases had them.
func examineDefaults(data string) []finding {
	defaults, err := store.ListDefaults(reverie.Data, data)
	if err != nil {
		return []finding{{"files", ill, err.Error(), "make the data folder readable for this user"}}
	}
	var found []finding
	moves := map[store.Move][]string{}
	for _, f := range defaults {
		moves[f.Move] = append(moves[f.Move], f.Earlier+" to "+f.Path)
		if f.Move == store.Unused {
			found = append(found, finding{"files", note, f.Earlier + " is not read: " + f.Path + " has taken its place",
				"copy over what you still want of it, then delete it"})
		}
		if f.State == store.Edited {
			found = append(found, finding{"files", note, f.At() + " was edited by you and does not follow releases; see below",
				"delete it to get the default back at the next start"})
		}
	}
	if due := moves[store.Due]; len(due) > 0 {
		found = append(found, finding{"files", note, "prompt files are moved at the next start: " + strings.Join(due, ", "),
			"you need not do anything: what you wrote in them stays. Until then the built-in texts are shown here and by `bot prompt`"})
	}
	if done := moves[store.Moved]; len(done) > 0 {
		found = append(found, finding{"files", note, "prompt files of an earlier release were moved: " + strings.Join(done, ", "), ""})
	}
	return found
}
