package task

import (
	"os"
	"path/filepath"
	"strings"
)

// inEnglish says what people read in a room: as it comes with the program.
func inEnglish(key string, fill ...string) string {
	b, err := os.ReadFile(filepath.Join("..", "..", "data", "messages", "en.txt"))
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(b)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name != key && name != key+"_more" {
			continue
		}
		for i := 0; i+1 < len(fill); i += 2 {
			text = strings.ReplaceAll(text, "{"+fill[i]+"}", fill[i+1])
		}
		return strings.ReplaceAll(text, `\n`, "\n")
	}
	return key
}
