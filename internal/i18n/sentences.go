package i18n

import "strings"

// Sentences joins non-empty sentences. After Chinese and Japanese punctuation it inserts no space.
func Sentences(each ...string) string {
	all := ""
	for _, s := range each {
		if s != "" && all != "" && !strings.HasSuffix(all, "。") && !strings.HasSuffix(all, "？") && !strings.HasSuffix(all, "！") {
			all += " "
		}
		all += s
	}
	return all
}
