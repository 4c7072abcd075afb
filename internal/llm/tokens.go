package llm

// The cost of a character in hundredths of a token, by class. Counting four
// characters a token is off by a factor of three for Chinese and by half for
// JSON, which is just what fills an assistant's window.
const (
	costLower = 21 // lower-case ASCII and the blank
	costUpper = 35
	costDigit = 45
	costOther = 55 // other ASCII: punctuation, line ends
	costAlpha = 30 // other scripts below U+2E80: accents, Greek, Cyrillic, Arabic …
	costWide  = 75 // CJK and above, emoji, broken bytes
)

// EstimateTokens estimates how many tokens s is for a language model, by the
// class of its characters: within about 20 % of a real tokenizer on prose, code,
// JSON and CJK alike. It allocates nothing; the empty string is 0.
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
