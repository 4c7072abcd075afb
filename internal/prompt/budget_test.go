package prompt

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawDemand(t *rapid.T) demand {
	d := demand{room: rapid.IntRange(-100, 5000).Draw(t, "room"), batch: rapid.Bool().Draw(t, "batch")}
	for i := range rapid.IntRange(0, 6).Draw(t, "sections") {
		d.sections = append(d.sections, need{
			id: string(rune('a' + i)), keep: rapid.SampledFrom([]int{10, 50, 50, 80, Must}).Draw(t, "keep"),
			tokens: rapid.IntRange(0, 1500).Draw(t, "tokens"), whole: rapid.Bool().Draw(t, "whole"),
		})
	}
	d.history = rapid.IntRange(0, max(0, d.room/2)).Draw(t, "history")
	d.turns = rapid.SliceOfN(rapid.IntRange(1, 800), 0, 12).Draw(t, "turns")
	return d
}

func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDemand(t)
		g, needed, ok := fit(d)
		newest, musts := 0, 0
		if n := len(d.turns); n > 0 {
			newest = d.turns[n-1]
		}
		for _, s := range d.sections {
			if s.keep >= Must {
				musts += s.tokens
			}
		}
		if ok != (musts+newest <= d.room) {
			t.Fatalf("fits: %v, with %d must-keeps, a turn of %d and room for %d", ok, musts, newest, d.room)
		}
		if !ok {
			if needed <= d.room {
				t.Fatalf("%d needed is not more than the room, %d", needed, d.room)
			}
			return
		}
		if g.leave != 0 && g.leave >= len(d.turns) {
			t.Fatalf("%d of %d turns left out: the newest must stay", g.leave, len(d.turns))
		}
		wanted := 0
		for _, s := range d.sections {
			wanted += s.tokens
		}
		sum, untouched := 0, true
		for i, s := range d.sections {
			got := g.sections[i]
			sum += got
			untouched = untouched && got == s.tokens
			switch {
			case got < 0 || got > s.tokens:
				t.Fatalf("section %s of %d tokens was granted %d", s.id, s.tokens, got)
			case s.keep >= Must && got != s.tokens:
				t.Fatalf("must-keep %s was cut", s.id)
			case s.whole && got != 0 && got != s.tokens:
				t.Fatalf("section %s was cut, but it is all or nothing", s.id)
			}
			for j, other := range d.sections { // the lower keep gives way first
				if other.keep < s.keep && got < s.tokens && g.sections[j] > 0 {
					t.Fatalf("%s (keep %d) was cut before %s (keep %d)", s.id, s.keep, other.id, other.keep)
				}
			}
		}
		if enough := wanted+max(newest, d.history) <= d.room; enough != untouched && wanted > musts {
			t.Fatalf("%d tokens of sections, a turn of %d, room for %d: untouched %v", wanted, newest, d.room, untouched)
		}
		history := 0
		for _, n := range d.turns[min(g.leave, len(d.turns)):] {
			history += n
		}
		if sum+history > d.room {
			t.Fatalf("%d + %d tokens granted, %d there", sum, history, d.room)
		}
		if g.leave > 0 && g.leave < len(d.turns)-1 && history > (d.room-sum)/2 {
			t.Fatalf("left out %d turns, and the history still takes %d of %d", g.leave, history, d.room-sum)
		}
		if total := history + left(d.turns, g.leave); untouched && !d.batch && total+sum <= d.room && g.leave > 0 {
			t.Fatalf("left out %d turns although all fits", g.leave)
		}
	})
}

// What fits exactly is left alone.
func TestFitExactly(t *testing.T) {
	d := demand{room: 100, sections: []need{{id: "a", keep: 10, tokens: 10}, {id: "b", keep: 50, tokens: 50, whole: true}}, turns: []int{10, 40}}
	if g, _, ok := fit(d); !ok || !slices.Equal(g.sections, []int{10, 50}) || g.leave != 1 {
		t.Errorf("%+v, %v", g, ok)
	}
	d.room = 99
	if g, _, ok := fit(d); !ok || !slices.Equal(g.sections, []int{0, 50}) {
		t.Errorf("%+v, %v", g, ok)
	}
}

func left(turns []int, n int) (sum int) {
	for _, t := range turns[:n] {
		sum += t
	}
	return sum
}
