package compact

import (
	"fmt"
	"unicode/utf8"

	"reverie/internal/llm"
)

// headTail keeps the first and the last runes of text and says how many are missing
// between them. A text that would not become shorter stays.
func headTail(text string, head, tail int) string {
	runes := []rune(text)
	missing := len(runes) - head - tail
	if missing <= 0 {
		return text
	}
	short := string(runes[:head]) +
		fmt.Sprintf("\n… %d characters left out here; they are kept in the transcript …\n", missing) + string(runes[len(runes)-tail:])
	if len(short) >= len(text) {
		return text
	}
	return short
}

// Cut keeps about so many tokens of text, two thirds of them from its beginning, and says
// in their place that others are missing. Below some twenty tokens only that remark is left.
func Cut(text string, most int) string {
	have := llm.EstimateTokens(text)
	if have <= most {
		return text
	}
	left := utf8.RuneCountInString(text)
	for share := most - remarkTokens; share > 0; share = share * 3 / 4 {
		n := int(int64(left) * int64(share) / int64(have)) // as if tokens were spread evenly; the loop mends it where they are not
		if n < 8 {
			break
		}
		if short := headTail(text, n-n/3, n/3); llm.EstimateTokens(short) <= most {
			return short
		}
	}
	return fmt.Sprintf("… %d characters left out …", left)
}

// remark is what Cut takes to say that something is missing, in tokens.
const remarkTokens = 20
