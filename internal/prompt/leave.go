package prompt

import (
	"maps"
	"strings"

	"reverie/internal/history"
)

// Leave drops what is kept in memory of a room that is talked in no more. It is
// read again if it is after all.
func (a *Assembler) Leave(room history.Talk) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.rooms, room)
	delete(a.rooms, jobTalk(room))
	maps.DeleteFunc(a.tasks, func(key taskKey, _ *taskCache) bool { return key.room == string(room) })
	delete(a.matches, string(room))
	delete(a.matches, string(jobTalk(room)))
	delete(a.users, string(room))
	for key := range a.texts {
		if strings.HasSuffix(key, " "+string(room)) {
			delete(a.texts, key)
		}
	}
}
