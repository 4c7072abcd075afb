package rehearsal

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"reverie/internal/lazyregexp"
)

var hookRE = lazyregexp.New(`(?i)\brehearse:\s*([a-z]+)(?:\s+([\w.]+))?`)

// hook executes a test hook; the package comment lists them.
func hook(_ turn, m []string) (reply, bool) {
	n, _ := strconv.Atoi(m[2]) // 0 = none given
	switch strings.ToLower(m[1]) {
	case "error":
		if n < 400 || n > 599 {
			n = 500
		}
		return reply{status: n}, true
	case "slow":
		d, err := time.ParseDuration(m[2])
		if err != nil || d < 0 || d > 10*time.Minute {
			d = 3 * time.Second
		}
		return reply{text: "I waited for " + d.String() + " first.", delay: d}, true
	case "long":
		return reply{text: longText(n)}, true
	}
	return reply{text: fmt.Sprintf("I know no rehearsal called “%s”. There are: error N, slow D, long N.", m[1])}, true
}

// longText returns a text of n words, in sentences and paragraphs.
func longText(n int) string {
	if n <= 0 || n > 20000 {
		n = 400
	}
	vocabulary := strings.Fields("every word of this long answer is here only to fill a page so that streaming can be watched")
	var b strings.Builder
	for i := range n {
		w := vocabulary[i%len(vocabulary)]
		if i%12 == 0 {
			w = capitalize(w)
		}
		b.WriteString(w)
		switch {
		case i == n-1:
			b.WriteString(".")
		case i%60 == 59:
			b.WriteString(".\n\n")
		case i%12 == 11:
			b.WriteString(". ")
		default:
			b.WriteString(" ")
		}
	}
	return b.String()
}
