package prompt

import "strings"

// Leave drops what is kept in memory of a room that is talked in no more. It is
// read again if it is after all.
func (a *Assembler) Leave(room string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.rooms, room)
	delete(a.tasks, room)
	delete(a.matches, room)
	delete(a.users, room)
	for key := range a.texts {
		if strings.HasSuffix(key, " "+room) {
			delete(a.texts, key)
		}
	}
}
