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
	ids    map[string]int32
	scores []float64      // by id: log probability of a piece
	begins *[1 << 16]bool // by prefixHash: whether a piece may begin so
}

// prefixHash returns the hash of a prefix with one more rune, for begins.
func prefixHash(hash uint32, r rune) uint32 {
	return (hash<<5 ^ hash>>13 ^ uint32(r)*0x9e3779b1) % (1 << 16)
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
	for from, first := range text {
		// A score of 0 means "none yet", as in the model's own tokenizer. There, unknown runes and
		// a few pieces also score 0.
		offer := func(to int, score float64, id int32) {
			if s := ways[from].score + score; ways[to].score == 0 || s >= ways[to].score {
				ways[to] = way{s, from, id}
			}
		}
		found, hash := false, uint32(0)
		for i, r := range text[from:] {
			if hash = prefixHash(hash, r); !v.begins[hash] {
				break
			}
			to := from + i + utf8.RuneLen(r)
			if id, ok := v.ids[text[from:to]]; ok {
				found = true
				offer(to, v.scores[id], id)
			}
		}
		if !found {
			offer(from+utf8.RuneLen(first), 0, 0)
		}
	}
	var out []piece
	for at := len(text); at > 0; at = ways[at].from {
		out = append(out, piece{text[ways[at].from:at], ways[at].id})
	}
	slices.Reverse(out)
	return out
}
