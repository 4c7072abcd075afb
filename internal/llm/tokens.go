package llm

// The cost of a character in hundredths of a token, by class. Four characters a token would be off
// by a factor of three for Chinese and by half for JSON.
const (
	costLower = 21 // lower-case ASCII and the blank
	costUpper = 35
	costDigit = 45
	costOther = 55 // other ASCII: punctuation, line ends
	costAlpha = 30 // other scripts below U+2E80: accents, Greek, Cyrillic, Arabic …
	costWide  = 75 // CJK and above, emoji, broken bytes
)

// EstimateTokens estimates the number of tokens of s by the class of its characters. It is within
// about 20 % of a real tokenizer on prose, code, JSON and CJK. It allocates nothing.
func EstimateTokens(s string) int {
	sum := 0
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r == ' ':
			sum += costLower
		case r >= 'A' && r <= 'Z':
			sum += costUpper
		case r >= '0' && r <= '9':
			sum += costDigit
		case r < 0x80:
			sum += costOther
		case r < 0x2E80:
			sum += costAlpha
		default:
			sum += costWide
		}
	}
	return (sum + 99) / 100
}
