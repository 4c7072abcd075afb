package encoder

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxPieces = 128  // the model's limit; the rest of a text is not read
	maxRunes  = 4096 // more than 128 pieces need, against hostile text
	blank     = '▁'  // starts every word
	reserved  = 6    // the first ids are control marks, never text; piece 0 is "unknown"
)

// vocabulary is the set of word pieces.
type vocabulary struct {
	ids     map[string]int32
	scores  []float64 // by id: log probability of a piece
	longest int       // in runes
}

// pieces splits text into its most likely pieces, at most 128. It uses a unigram model, as
// SentencePiece does. unknown is the share of their runes outside the vocabulary. A run of such
// runes is one piece, number 0.
func (v *vocabulary) pieces(text string) (ids []int32, unknown float64) {
	text = normalizeText(text)
	if text == "" {
		return nil, 1
	}
	var runes, strange int
	for _, p := range v.bestSegmentation(text) {
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

// normalizeText normalizes text as SentencePiece does: NFKC, "▁" before every word, no white space, no
// control characters.
func normalizeText(text string) string {
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

// bestSegmentation returns the most likely segmentation of valid UTF-8 text. Every rune ends some path: the
// parts of long pieces are pieces, too, and an unknown rune stands alone.
func (v *vocabulary) bestSegmentation(text string) []piece {
	type way struct {
		score float64
		from  int
		id    int32
	}
	ways := make([]way, len(text)+1) // by byte, used where a rune ends
	for from := range text {
		// A score of 0 means "none yet", as in the model's own tokenizer. There, unknown runes and
		// a few pieces also score 0.
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
