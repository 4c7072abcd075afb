package task

import (
	"context"
	"strings"
	"testing"
	"time"

	"reverie/internal/trust"
)

// TestMisplaced: a task whose room others read now is not worked on there, whether it falls due
// or waits to be worked on already. It goes on where its readers read, or is paused and says why.
func TestMisplaced(t *testing.T) {
	for _, chat := range []string{"", "!chat:x"} {
		t.Run("direct chat "+chat, func(t *testing.T) {
			p := newPost(t)
			shared := false
			p.sched.Room = func(_ context.Context, it Task) (string, error) {
				if it.Room == here && shared && it.Label.Readers.Person() != "" {
					return chat, nil
				}
				return it.Room, nil
			}
			schedule := Schedule{Type: daily, At: "09:00"}
			secret := add(t, p.store, Task{Room: here, User: "@ann:x", Content: "secret", Schedule: &schedule, Label: with(here, "@ann:x").Label()})
			early := Schedule{Type: daily, At: "08:30"}
			handed := add(t, p.store, Task{Room: here, User: "@ann:x", Content: "handed over", Schedule: &early, Label: with(here, "@ann:x").Label()})
			add(t, p.store, Task{Room: here, Content: "ours", Schedule: &schedule})
			p.now = time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)
			if p.look(); len(p.inbox) != 1 {
				t.Fatalf("handed over: %+v", p.inbox)
			}
			shared = true
			p.work()
			p.at(21, 9, 0)
			p.at(21, 9, 1)
			for _, it := range []Task{secret, handed} {
				got, err := p.store.Find(t.Context(), it.ID)
				switch {
				case err != nil:
					t.Fatal(err)
				case chat == "" && (got.Status != Paused || got.Reason != misplacedReason || got.Runs != 0 || !got.NextDue.IsZero()):
					t.Errorf("without a direct chat: %+v", got)
				case chat != "" && (got.Room != chat || got.Status != Active || got.Runs != 1 || got.Label != it.Label):
					t.Errorf("with a direct chat: %+v", got)
				}
			}
			if chat == "" {
				p.heard("ours 21 09:00")
			} else {
				p.heard("ours 21 09:00", "secret 21 09:00", "handed over 21 08:30")
			}
			runs, err := p.store.AllRuns(t.Context(), "", handed.ID, 10)
			if err != nil || len(runs) != 1 || chat == "" && (runs[0].State != RunSkipped || !strings.Contains(runs[0].Result.String(), "other people")) || chat != "" && runs[0].State != RunDone {
				t.Errorf("runs %+v, %v", runs, err)
			}
		})
	}
}

// TestMergedIntegrity: the task that stays of two that ask for the same is trusted as far as
// the less trusted one, and only tasks of the same readers are merged.
func TestMergedIntegrity(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	foreign := asks(here, "@ann:x").Label()
	foreign.Integrity = trust.Foreign
	stays := add(t, s, Task{Room: here, Content: "water the plants", Label: asks(here, "@ann:x").Label()})
	goes := add(t, s, Task{Room: here, Content: "water the plants", Label: foreign})
	secret := add(t, s, Task{Room: here, Content: "water the plants", Label: with(here, "@ann:x").Label()})
	tx := must(s.db.BeginTx(ctx, nil))(t)
	defer func() { _ = tx.Rollback() }()
	done, err := s.Tidy(ctx, tx, s.now(), []Tidying{
		{Kind: TidyMerge, Room: here, ID: secret.ID, Updated: secret.Updated, Into: stays.ID, IntoAt: stays.Updated, Reason: "the same"},
		{Kind: TidyMerge, Room: here, ID: goes.ID, Updated: goes.Updated, Into: stays.ID, IntoAt: stays.Updated, Reason: "the same"},
	})
	if err != nil || len(done) != 1 || done[0].ID != goes.ID {
		t.Errorf("merged %+v, %v", done, err)
	}
	if got, err := get(ctx, tx, in(here), stays.ID); err != nil || got.Label != foreign {
		t.Errorf("%+v, %v", got.Label, err)
	}
}
