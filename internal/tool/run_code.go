package tool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reverie/internal/sandbox"
	"reverie/internal/sandbox/script"
)

// RunCode is the name of the tool that computes.
const RunCode = "run_code"

// codeTime limits one computation.
const codeTime = 5 * time.Second

type runCodeArgs struct {
	Code string `json:"code" rule:"required" doc:"The program; end it with an expression, or use console.log."`
}

// runCode runs JavaScript that can only compute. Its result follows from the call alone, so it is
// trusted like the call, and nothing is marked as shown.
func runCode(s *Set, ctx context.Context, scope Scope, a runCodeArgs) (string, error) {
	r, err := script.Run(ctx, a.Code, codeTime, s.cfg.Commands.Zone)
	switch {
	case err != nil:
		return "", notConfined(s, ctx, scope, RunCode, err)
	case r.Ended == sandbox.TimeUp:
		return "", refusal(fmt.Sprintf("Stopped after %v. Find a way with less work.", codeTime))
	case r.Ended != sandbox.Finished, r.Code != 0 && r.Output == "":
		return "", refusal("Stopped: it needed too much memory. Find a way with less of it.")
	case r.Code != 0:
		return "", refusal(capText(r.Output, MaxResult-100) + "\nCorrect the program and call run_code again.")
	case r.Output == "":
		return "It ran, and nothing was printed; the last expression has no value.", nil
	}
	return r.Output, nil
}

// notConfined returns the model's error for a run that did not take place.
func notConfined(s *Set, ctx context.Context, scope Scope, name string, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return err
	}
	s.cfg.Log.Error("not run", "tool", name, "room", scope.Room, "err", err)
	return refusal(name + " was not run: programs cannot be confined on the assistant's machine just now, and the operator's log " +
		"says why. Do without it.")
}
