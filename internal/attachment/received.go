package attachment

import (
	"slices"

	"reverie/internal/history"
	"reverie/internal/media"
)

// HasPictures reports whether a conversation has pictures.
func HasPictures(past []history.Message) bool {
	return slices.ContainsFunc(past, func(m history.Message) bool {
		return slices.ContainsFunc(m.Files, func(f history.File) bool { return f.Picture != "" })
	})
}

// Received maps the readable paths of received files and their texts to names.
func Received(past []history.Message) map[string]string {
	all := map[string]string{}
	for i := range past {
		for j := range past[i].Files {
			if f := &past[i].Files[j]; f.Path != "" {
				all[f.Path], all[media.TextPath(f.Path)] = f.Name, f.Name
			}
		}
	}
	return all
}
