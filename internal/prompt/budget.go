package prompt

import (
	"cmp"
	"fmt"
	"slices"

	"reverie/internal/prompt/section"
)

// TooLargeError means that the required parts do not fit into the model's window. All numbers are
// tokens, scaled to the model's own count where that is known.
type TooLargeError struct {
	Needed int // instructions and the newest turn
	Room   int // left for them by the window
	Window int
	Output int // reserved for the answer
	Tools  int // descriptions of the tools
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("prompt: %d tokens must be sent, but the window of %d leaves room for %d (%d are for the answer, %d for tools)",
		e.Needed, e.Window, max(e.Room, 0), e.Output, e.Tools)
}

// demand is the size of everything that could be in a request, in tokens.
type demand struct {
	room     int // for all of it
	history  int // what sections should leave for the turns, if they can
	sections []need
	turns    []int // whole turns, oldest first
	mustDrop bool  // the history has outgrown its room, so turns must be dropped
	budget   int   // for all sections together, in any window; 0 = none
}

type need struct {
	id           string
	keep         int
	tokens       int
	allOrNothing bool // all or nothing
}

// grant is what the request may hold.
type grant struct {
	sections  []int // tokens, as in demand
	dropTurns int   // number of oldest turns to drop
}

// minSection is the smallest size of a shrunk section, in tokens.
const minSection = 40

// fit decides what a request holds. Required sections and the newest turn always stay; ok is false
// if they do not fit. Other sections give way to that turn, to the history's share and to the budget,
// those with the lowest keep first. Older turns are dropped in one batch, down to half of their room, so that
// dropping is rare. needed is the size of the required parts.
func fit(d demand) (g grant, needed int, ok bool) {
	sum := 0
	order := make([]int, len(d.sections))
	for i, s := range d.sections {
		g.sections = append(g.sections, s.tokens)
		order[i] = i
		sum += s.tokens
	}
	newest := 0
	if n := len(d.turns); n > 0 {
		newest = d.turns[n-1]
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := d.sections[i], d.sections[j]
		return cmp.Or(cmp.Compare(a.keep, b.keep), cmp.Compare(a.id, b.id))
	})
	for _, i := range order {
		s := d.sections[i]
		over := sum + max(newest, d.history) - d.room
		if d.budget > 0 {
			over = max(over, sum-d.budget)
		}
		if over <= 0 || s.keep >= section.Must {
			break
		}
		left := s.tokens - over
		if left < minSection || s.allOrNothing {
			left = 0
		}
		g.sections[i] = left
		sum -= s.tokens - left
	}
	if sum+newest > d.room {
		return g, sum + newest, false
	}
	g.dropTurns = turnsToDrop(d.turns, d.room-sum, d.mustDrop)
	return g, sum + newest, true
}

// turnsToDrop returns how many of the oldest turns must be dropped.
func turnsToDrop(turns []int, room int, batch bool) int {
	total := 0
	for _, t := range turns {
		total += t
	}
	if total <= room && !batch {
		return 0
	}
	leave := 0
	for leave < len(turns)-1 && total > room/2 {
		total -= turns[leave]
		leave++
	}
	return leave
}
