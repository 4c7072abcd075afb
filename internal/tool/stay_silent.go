package tool

import (
	"context"
	"errors"
)

// StaySilent names the tool that keeps an answer out of the room. It is for answers to system
// events. The tool is a call rather than a word in the answer, which a text could contain by
// accident.
const StaySilent = "stay_silent"

type staySilentArgs struct {
	Reason string `json:"reason" rule:"required" doc:"Why nobody need know."`
}

// staySilent only records its call in the transcript, where the session finds it.
func (s *Set) staySilent(_ context.Context, scope Scope, _ staySilentArgs) (string, error) {
	if !scope.System {
		return "", errors.New("a person waits for your answer: write it")
	}
	return "Nothing will be said in the room. End with one short line; it is kept with the event.", nil
}
