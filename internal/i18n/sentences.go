package i18n

import "strings"

// Sentences puts sentences one after the other, without those that are empty. Where the one
// before ends as in Chinese and Japanese no blank belongs between two.
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
