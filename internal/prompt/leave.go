package prompt

import (
	"reverie/internal/history"
)

// Leave drops what is kept in memory of a room that is talked in no more. It is
// read again if it is after all.
func (a *Assembler) Leave(room history.Talk) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.rooms, room)
	delete(a.rooms, jobTalk(room))
	delete(a.users, string(room))
}
