package text

// Cut shortens a text to limit characters, and shows that it did.
func Cut(text string, limit int) string {
	if r := []rune(text); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return text
}
