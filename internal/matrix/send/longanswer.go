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

// A text that is too large for one event is sent as its beginning and
// all of it as a Markdown file. The file is a row beside the row of the beginning, with the whole
// text, so both commit together, and nothing of it lies on the disk. It is named after what it
// says: an answer that is given anew gets another file, and the old one is redacted.

// layOut returns what a message with that text reads in a room, and the file with all of it
// if it is too large for one event.
func (s *Sender) layOut(ctx context.Context, room, text string) (short, file string, err error) {
	if render.Size(text) <= render.MaxSize {
		return text, "", nil
	}
	name := media.Name(s.Text(ctx, room, "matrix.whole_name"))
	note := "\n\n*" + s.Text(ctx, room, "matrix.whole", "file", name) + "*"
	packed, err := json.Marshal(outFile{Name: name, Type: "text/markdown", Size: int64(len(text)), Text: true})
	return render.Beginning(text, render.MaxSize, note), string(packed), err
}

// tooLarge tells whether a homeserver, or a proxy in front of it, refused an
// event for its size.
func tooLarge(err error) bool {
	var h mautrix.HTTPError
	return errors.As(err, &h) && (h.IsStatus(http.StatusRequestEntityTooLarge) || errors.Is(err, mautrix.MTooLarge))
}
