package encoder

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxPieces = 128  // what the model was made for; the rest of a text is not read
	maxRunes  = 4096 // more than enough for 128 pieces, and an end to hostile text
	blank     = '▁'  // stands before every word
	reserved  = 6    // the first pieces are marks and never in a text; piece 0 is "unknown"
)

// vocabulary knows the pieces words are made of.
type vocabulary struct {
	ids     map[string]int32
	scores  []float64 // by id: how likely a piece is, as a logarithm
	longest int       // in runes
}

// pieces cuts the text into the pieces that are most likely together (a unigram
// model, as SentencePiece has it), 128 at most, and tells what share of the
// runes in them is in no piece. A run of such runes is one piece, number 0.
func (v *vocabulary) pieces(text string) (ids []int32, unknown float64) {
	text = tidy(text)
	if text == "" {
		return nil, 1
	}
	var runes, strange int
	for _, p := range v.best(text) {
		if p.id != 0 || len(ids) == 0 || ids[len(ids)-1] != 0 {
			if len(ids) == maxPieces {
				break
			}
			ids = append(ids, p.id)
		}
		for _, r := range p.text {
			if r == blank {
				continue
			}
			runes++
			if p.id == 0 {
				strange++
			}
		}
	}
	return ids, float64(strange) / float64(max(runes, 1))
}

// tidy brings a text into the form the pieces are in: compatibility forms
// unified, "▁" before every word and nothing between words, no controls.
func tidy(text string) string {
	n := 0
	for i := range text {
		if n++; n > maxRunes {
			text = text[:i]
			break
		}
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(norm.NFKC.String(text)), string(blank))
	if text == "" {
		return ""
	}
	return string(blank) + text
}

type piece struct {
	text string
	id   int32
}

// best is the likeliest way through the text, which is valid UTF-8. Every rune is
// the end of some way: what longer pieces are made of are pieces too, and a rune
// in no piece goes by itself.
func (v *vocabulary) best(text string) []piece {
	type way struct {
		score float64
		from  int
		id    int32
	}
	ways := make([]way, len(text)+1) // by byte, used where a rune ends
	for from := range text {
		// A score of 0 stands for "none yet", as it does in the model's own
		// tokenizer, where unknown runes and a few pieces score 0 as well.
		offer := func(to int, score float64, id int32) {
			if s := ways[from].score + score; ways[to].score == 0 || s >= ways[to].score {
				ways[to] = way{s, from, id}
			}
		}
		_, first := utf8.DecodeRuneInString(text[from:])
		found := false
		for to, n := from, 0; n < v.longest && to < len(text); n++ {
			_, size := utf8.DecodeRuneInString(text[to:])
			to += size
			if id, ok := v.ids[text[from:to]]; ok {
				found = true
				offer(to, v.scores[id], id)
			}
		}
		if !found {
			offer(from+first, 0, 0)
		}
	}
	var out []piece
	for at := len(text); at > 0; at = ways[at].from {
		out = append(out, piece{text[ways[at].from:at], ways[at].id})
	}
	slices.Reverse(out)
	return out
}
