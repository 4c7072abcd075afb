package history

import (
	"context"

	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/store"
)

// File is something that came with a message, and what the model gets of it.
type File struct {
	Name string    `json:"name"` // as its sender calls it, for people
	Type string    `json:"type,omitempty"`
	Size int64     `json:"size,omitempty"` // bytes
	Path string    `json:"path,omitempty"` // below the data folder; empty = it could not be had
	Note i18n.Text `json:"note,omitempty"` // why the model gets nothing of it

	Text string `json:"text,omitempty"` // what the model gets of what stands in it
	More string `json:"more,omitempty"` // where all of its text can be read, below the data folder; empty = Text is all

	Picture string `json:"picture,omitempty"` // what the model is shown, below the data folder
	Width   int    `json:"width,omitempty"`   // pixels, as it came
	Height  int    `json:"height,omitempty"`
	W       int    `json:"w,omitempty"` // pixels of the picture
	H       int    `json:"h,omitempty"`
}

// PictureTokens is what a picture takes in a request, by estimate: a token for each
// square of 28 pixels, as the newer models count.
func PictureTokens(w, h int) int { return (w + 27) / 28 * ((h + 27) / 28) }

// fileFrame is what the lines around a file take, in tokens.
const fileFrame = 30

// Tokens is what f takes in a request, by estimate.
func (f *File) Tokens() int {
	n := fileFrame + llm.EstimateTokens(f.Name) + llm.EstimateTokens(f.Note.String()) + llm.EstimateTokens(f.Text)
	if f.Picture != "" {
		n += PictureTokens(f.W, f.H)
	}
	return n
}

// Paths lists the kept files that a conversation still needs: those of the messages
// that Load loads, in any room.
func (s *Store) NeededFiles(ctx context.Context) ([]string, error) {
	return s.paths(ctx, `SELECT files FROM message m WHERE files <> '' AND retired = 0
		AND conversation = (SELECT conversation FROM room WHERE id = m.room)`)
}

// Named lists the kept files that any message names.
func (s *Store) AllFiles(ctx context.Context) ([]string, error) {
	return s.paths(ctx, `SELECT files FROM message WHERE files <> ''`)
}

// PathsOf lists the files of the message event, whatever became of it.
func (s *Store) FilesOf(ctx context.Context, event string) ([]string, error) {
	return s.paths(ctx, `SELECT files FROM message WHERE event_id = ? AND files <> ''`, event)
}

// Names reports whether any message names the kept file.
func (s *Store) HasFile(ctx context.Context, path string) (bool, error) {
	named, err := store.Value[bool](ctx, s.db, `SELECT EXISTS (SELECT 1 FROM message WHERE files <> '' AND instr(files, ?) > 0)`, path)
	return named, store.Wrap(err, "look for a file")
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
