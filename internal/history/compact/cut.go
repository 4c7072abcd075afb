package compact

import (
	"fmt"
	"unicode/utf8"

	"reverie/internal/llm"
)

// headTail keeps the first and last runes of text. It inserts a note about the omitted ones. A text
// that would not become shorter stays.
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

// CutMiddle truncates text to about limit tokens, with a note about the omission. Two thirds of
// them come from its beginning. Below about twenty tokens only the note is left.
func CutMiddle(text string, limit int) string {
	have := llm.EstimateTokens(text)
	if have <= limit {
		return text
	}
	left := utf8.RuneCountInString(text)
	for share := limit - remarkTokens; share > 0; share = share * 3 / 4 {
		n := int(int64(left) * int64(share) / int64(have)) // assumes evenly spread tokens; the loop corrects it
		if n < 8 {
			break
		}
		if short := headTail(text, n-n/3, n/3); llm.EstimateTokens(short) <= limit {
			return short
		}
	}
	return fmt.Sprintf("… %d characters left out …", left)
}

// remarkTokens is the number of tokens of Cut's note.
const remarkTokens = 20
