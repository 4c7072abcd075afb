package goal

import (
	"errors"
	"testing"
	"time"

	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestGoalReaders: a goal of a direct chat does not exist for later members, and theirs does not replace it.
func TestGoalReaders(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	ann, bob, group := with(here, "@ann:x"), with(here, "@bob:x"), asks(here, "@bob:x")
	secret := ok(g.Create(ctx, ann, "Leave my husband", "high"))
	ours := ok(g.Create(ctx, group, "Paint the fence", ""))
	for _, c := range []trust.Caller{bob, group, asks(there, "@ann:x")} {
		for name, err := range map[string]error{
			"get": second(g.Get(ctx, c.Place, secret.ID)), "update": second(g.Update(ctx, c, secret.ID, Patch{Priority: "low"})),
			"pause": second(g.Pause(ctx, c, secret.ID)), "resume": second(g.Resume(ctx, c, secret.ID)),
			"complete": second(g.Complete(ctx, c, secret.ID, "x")), "abandon": second(g.Abandon(ctx, c, secret.ID, "x")),
			"checkpoint": second(g.SetCheckpoint(ctx, c, secret.ID, "x", Done)), "decide": second(g.Decide(ctx, c, secret.ID, Decision{Description: "x"})),
			"change":   second(g.Decide(ctx, c, secret.ID, Decision{N: 1, Description: "x"})),
			"artifact": second(g.RecordArtifact(ctx, c, secret.ID, Artifact{Action: "created", Path: "x"})),
		} {
			if !errors.Is(err, errNotFound) {
				t.Errorf("%+v: %s: %v", c, name, err)
			}
		}
		markers, _ := ParseMarkers("[GOAL] Leave my husband - DONE")
		if _, err := g.ApplyMarkers(ctx, c, c.Room, 7, markers); err != nil {
			t.Error(err)
		}
	}
	for c, want := range map[trust.Caller]string{ann: secret.ID, group: ours.ID, bob: ""} {
		if got, found, err := g.Active(ctx, c.Place); err != nil || got.ID != want || found != (want != "") {
			t.Errorf("%+v: the goal is %+v, %v", c, got, err)
		}
		if got, _, err := g.ForPrompt(ctx, c.Place, time.Time{}); err != nil || got.ID != want {
			t.Errorf("%+v: shown is %+v, %v", c, got, err)
		}
	}
	if got, err := g.Get(ctx, ann.Place, secret.ID); err != nil || got.Status != Active || len(got.Checkpoints) != 0 {
		t.Errorf("the goal is now %+v, %v", got, err)
	}
}

// TestIntegrityFalls: a caller's words cap the goal's integrity; a change of state keeps it.
func TestIntegrityFalls(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	owner, foreign := asks(here, "@ann:x"), asks(here, "@ann:x")
	owner.Integrity, foreign.Integrity = trust.Owner, trust.Foreign
	goal := ok(g.Create(ctx, owner, "Ship it", ""))
	ok(g.Pause(ctx, foreign, ""))
	if goal = ok(g.Resume(ctx, foreign, "")); goal.Label.Integrity != trust.Owner {
		t.Errorf("paused and resumed: %+v", goal.Label)
	}
	if goal = ok(g.SetCheckpoint(ctx, foreign, "", "Write the code", Done)); goal.Label != (trust.Label{Integrity: trust.Foreign, Readers: trust.RoomReaders(here)}) {
		t.Errorf("with a foreign step: %+v", goal.Label)
	}
}

// TestMoveReaders: after a room upgrade, room goals are readable in the new room and private ones stay private.
func TestMoveReaders(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	ann, group := with(here, "@ann:x"), asks(here, "@bob:x")
	for _, c := range []trust.Caller{ann, group} {
		ok(g.Create(ctx, c, "of "+string(c.Readers()), ""))
	}
	for range 2 {
		expect.OK(t, g.Move(ctx, here, there))
	}
	for _, c := range []trust.Caller{ann, group} {
		c.Room = there
		if goal, found, err := g.Active(ctx, c.Place); err != nil || !found || goal.Label.Readers != c.Readers() {
			t.Errorf("%+v: %+v, %v", c, goal, err)
		}
	}
}
