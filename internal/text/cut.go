package text

// Cut truncates a text to limit characters, with "…" as the last one.
func Cut(text string, limit int) string {
	if r := []rune(text); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return text
}
