package session

import (
	"reverie/internal/task"
	"reverie/internal/trust"
)

// inDM is the direct chat of the owner, who asks.
var inDM = task.Caller{Place: trust.Place{Room: "!dm", Person: owner, Private: true}, Integrity: trust.User}

// inGroup is a room among several people, where the owner asks.
func inGroup(room string) task.Caller {
	return task.Caller{Place: trust.Place{Room: room, Person: owner}, Integrity: trust.User}
}

// callerIn is inDM for that room, and inGroup for others.
func callerIn(room string) task.Caller {
	if room == inDM.Room {
		return inDM
	}
	return inGroup(room)
}
