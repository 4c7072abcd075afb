package prompt

import (
	"cmp"
	"fmt"
	"slices"

	"reverie/internal/prompt/section"
)

// TooLargeError means that what must be sent does not fit into the model's
// window. All numbers are tokens, as far as is known as the model counts them.
type TooLargeError struct {
	Needed int // instructions and the newest turn
	Room   int // what the window leaves for them
	Window int
	Output int // reserved for the answer
	Tools  int // taken by the descriptions of the tools
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("prompt: %d tokens must be sent, but the window of %d leaves room for %d (%d are for the answer, %d for tools)",
		e.Needed, e.Window, max(e.Room, 0), e.Output, e.Tools)
}

// demand is what wants to be in a request, in tokens.
type demand struct {
	room     int // for all of it
	history  int // what the sections leave for the turns, if they can
	sections []need
	turns    []int // whole turns, oldest first
	batch    bool  // turns must go: the history has outgrown its room
}

type need struct {
	id     string
	keep   int
	tokens int
	whole  bool // all or nothing
}

// grant is what may be in it.
type grant struct {
	sections []int // tokens, as in demand
	leave    int   // so many of the oldest turns stay out
}

// useful is the fewest tokens that a shrunk section is kept for.
const useful = 40

// fit decides what a request holds. Must-keeps and the newest turn always stay; when they do not
// fit, ok is false. The other sections, those of the lowest keep first, give way for that turn and
// the history's share. Older turns are left out in one batch, down to half of their room, so that
// it does not happen again soon. needed is how many tokens must be sent.
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
		if over <= 0 || s.keep >= section.Must {
			break
		}
		left := s.tokens - over
		if left < useful || s.whole {
			left = 0
		}
		g.sections[i] = left
		sum -= s.tokens - left
	}
	if sum+newest > d.room {
		return g, sum + newest, false
	}
	room := d.room - sum
	g.leave = leaveOut(d.turns, room, d.batch)
	return g, sum + newest, true
}

// leaveOut says how many of the oldest turns must go.
func leaveOut(turns []int, room int, batch bool) int {
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
