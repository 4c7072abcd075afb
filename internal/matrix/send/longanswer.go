package send

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"maunium.net/go/mautrix"

	"reverie/internal/matrix/render"
	"reverie/internal/media"
)

// A text that is too large for one event is sent as its beginning plus a Markdown file with all of
// it. The file is a row next to the row of the beginning and holds the whole text, so both are
// stored in one transaction, without a file on disk. The row is named after the text: a new version
// of the answer gets another file, and the old one is redacted.

// splitLarge returns the text of a message event. If text is too large for one event, file is the
// row form of a file with all of it.
func (s *Sender) splitLarge(ctx context.Context, room, text string) (short, file string, err error) {
	if render.Size(text) <= render.MaxSize {
		return text, "", nil
	}
	name := media.Name(s.Text(ctx, room, "matrix.whole_name"))
	note := "\n\n*" + s.Text(ctx, room, "matrix.whole", "file", name) + "*"
	packed, err := json.Marshal(rowFile{Name: name, Type: "text/markdown", Size: int64(len(text)), Text: true})
	return render.Truncate(text, render.MaxSize, note), string(packed), err
}

// tooLarge reports whether a homeserver or its reverse proxy refused an event for its size.
func tooLarge(err error) bool {
	var h mautrix.HTTPError
	return errors.As(err, &h) && (h.IsStatus(http.StatusRequestEntityTooLarge) || errors.Is(err, mautrix.MTooLarge))
}
