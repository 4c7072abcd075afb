package text

import (
	"slices"
	"strings"
)

// maxNearest is how many suggestions Nearest returns.
const maxNearest = 3

// Nearest returns the names that a mistyped word may mean, the likeliest first: those it is a
// prefix of, and those within a small edit distance.
func Nearest(word string, names []string) []string {
	word = strings.ToLower(word)
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	for _, n := range names {
		far := editDistance(word, strings.ToLower(n))
		if len(word) >= 2 && strings.HasPrefix(n, word) {
			far = min(far, 1)
		}
		if most := max(1, min(len(word), len(n))/3); far <= min(most, 2) {
			found = append(found, candidate{n, far})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.far - b.far })
	var out []string
	for _, c := range found[:min(len(found), maxNearest)] {
		out = append(out, c.name)
	}
	return out
}

// editDistance is the Damerau-Levenshtein distance of a and b.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	var older, old []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(x); i++ {
		older, old, row = old, row, make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			changed := old[j-1]
			if x[i-1] != y[j-1] {
				changed++
			}
			row[j] = min(old[j]+1, row[j-1]+1, changed)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(y)]
}
