package history

import (
	"context"

	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/store"
)

// File is an attachment of a message, and what the model gets of it.
type File struct {
	Name string    `json:"name"` // the sender's file name
	Type string    `json:"type,omitempty"`
	Size int64     `json:"size,omitempty"` // bytes
	Path string    `json:"path,omitempty"` // relative to the data folder; empty = not downloaded
	Note i18n.Text `json:"note,omitempty"` // why the model gets nothing of it

	Text string `json:"text,omitempty"` // the text for the model, perhaps only its beginning
	More string `json:"more,omitempty"` // path of the full text, relative to the data folder; empty = Text is all

	Picture string `json:"picture,omitempty"` // path of the image for the model, relative to the data folder
	Width   int    `json:"width,omitempty"`   // pixels of the original
	Height  int    `json:"height,omitempty"`
	W       int    `json:"w,omitempty"` // pixels of Picture
	H       int    `json:"h,omitempty"`
}

// PictureTokens estimates the tokens of an image: one for each square of 28 pixels, as newer models
// count.
func PictureTokens(w, h int) int { return (w + 27) / 28 * ((h + 27) / 28) }

// fileFrame is the number of tokens of the lines around a file.
const fileFrame = 30

// Tokens estimates the tokens of f in a request.
func (f *File) Tokens() int {
	n := fileFrame + llm.EstimateTokens(f.Name) + llm.EstimateTokens(f.Note.String()) + llm.EstimateTokens(f.Text)
	if f.Picture != "" {
		n += PictureTokens(f.W, f.H)
	}
	return n
}

// NeededFiles lists the stored files of messages that Load returns, in any room.
func (s *Store) NeededFiles(ctx context.Context) ([]string, error) {
	return s.paths(ctx, `SELECT files FROM message m WHERE files <> '' AND retired = 0
		AND conversation = (SELECT conversation FROM room WHERE id = m.room)`)
}

// AllFiles lists the stored files of all messages.
func (s *Store) AllFiles(ctx context.Context) ([]string, error) {
	return s.paths(ctx, `SELECT files FROM message WHERE files <> ''`)
}

// FilesOf lists the stored files of the message event.
func (s *Store) FilesOf(ctx context.Context, event string) ([]string, error) {
	return s.paths(ctx, `SELECT files FROM message WHERE event_id = ? AND event_id <> '' AND files <> ''`, event)
}

func (s *Store) paths(ctx context.Context, query string, args ...any) ([]string, error) {
	var all []string
	err := store.Each(ctx, s.db, func(row store.Row) error {
		var files []File
		err := row.Scan(store.JSON(&files))
		for _, f := range files {
			if f.Path != "" {
				all = append(all, f.Path)
			}
		}
		return err
	}, query, args...)
	return all, store.Wrap(err, "list files")
}
