package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"maunium.net/go/mautrix"

	"reverie/internal/delivery"
	"reverie/internal/matrix/render"
	"reverie/internal/media"
)

// A text that is too large for one event, or for the homeserver, is sent as its beginning and
// all of it as a Markdown file. The file is a row beside the row of the beginning, with the whole
// text, so both commit together, and nothing of it lies on the disk. It is named after what it
// says: an answer that is given anew gets another file, and the old one is redacted.

// smallest is the cost of a message whose size is not why it is refused. The limits
// of homeservers and of proxies in front of them are not known.
const smallest = 4000

// layOut returns what a message with that text reads in a room, and the file with all of it
// if it is too large for one event.
func (c *Client) layOut(ctx context.Context, room, text string) (short, file string, err error) {
	if render.Size(text) <= render.MaxSize {
		return text, "", nil
	}
	return c.shorten(ctx, room, text, render.MaxSize)
}

// shorten returns the beginning of a text that costs at most limit, and the file with all of it.
func (c *Client) shorten(ctx context.Context, room, text string, limit int) (short, file string, err error) {
	name := media.Name(c.cfg.Text(ctx, room, "matrix.whole_name"))
	note := "\n\n*" + c.cfg.Text(ctx, room, "matrix.whole", "file", name) + "*"
	packed, err := json.Marshal(outFile{Name: name, Type: "text/markdown", Size: int64(len(text)), Text: true})
	return render.Beginning(text, limit, note), string(packed), err
}

// tooLarge tells whether a homeserver, or a proxy in front of it, refused an
// event for its size.
func tooLarge(err error) bool {
	var h mautrix.HTTPError
	return errors.As(err, &h) && (h.IsStatus(http.StatusRequestEntityTooLarge) || errors.Is(err, mautrix.MTooLarge))
}

// asFile replaces a message that the homeserver finds too large by a short beginning and a
// file, and tells whether it did.
func (c *Client) asFile(ctx context.Context, r delivery.OutboxRow) (done bool, err error) {
	if r.File != "" || r.Poll != "" || render.Size(r.Text) <= smallest {
		return false, nil
	}
	short, file, err := c.shorten(ctx, r.Room, r.Text, smallest)
	if err != nil {
		return false, err
	}
	added, err := c.outbox.ReplaceByFile(ctx, r, short, file)
	if added {
		c.cfg.Log.Warn("matrix: a message is too large for the homeserver; sending it as a file", "room", r.Room, "message", r.ID)
	}
	return true, err
}
