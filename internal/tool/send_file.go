package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"reverie/internal/media"
	"reverie/internal/tool/workspace"
)

// SendFile is the name of the tool that sends a file into the room.
const SendFile = "send_file"

// Outgoing is a file to be sent. It is a copy that no longer changes.
type Outgoing struct {
	Name    string // for people
	Caption string
	media.Stored
}

// maxSent is the largest file that is sent, in bytes. The transport and the homeserver may accept
// less.
const maxSent = 50_000_000

type sendFileArgs struct {
	Path    string `json:"path" rule:"required" doc:"Such as data/skills/NAME.md."`
	Caption string `json:"caption" doc:"Shown with it."`
}

func (s *Set) sendFile(ctx context.Context, scope Scope, a sendFileArgs) (string, error) {
	if scope.Send == nil || s.cfg.Media == nil || scope.System {
		return "", refusal("A file is sent only when a person asks for it in a conversation that takes files. Nothing was sent.")
	}
	f, name, err := files{s, scope}.open(a.Path)
	if err != nil {
		return "", err
	}
	kept, err := s.cfg.Media.Save(f, maxSent) // closes f
	var large *media.TooLargeError
	if errors.As(err, &large) {
		return "", refusal(fmt.Sprintf("%s is too large to be sent (more than %s).", clip(a.Path), media.FormatSize(large.Most)))
	}
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(kept.Type, "text/") { // clients must not render it as a page
		kept.Type = "text/plain"
	}
	shown := cmp.Or(scope.Files[name], path.Base(name))
	out := Outgoing{Name: media.Name(shown), Caption: strings.TrimSpace(a.Caption), Stored: kept}
	if err := scope.Send(ctx, out); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s (%s) is on its way; the person sees it before your answer.", out.Name, media.FormatSize(kept.Size)), nil
}

// open opens a file that the model may read. name is its path in the data folder or as asked.
func (f files) open(asked string) (file *os.File, name string, err error) {
	sent, ok := f.findReceived(asked)
	if !ok && f.has(asked) {
		file, err = f.cfg.Files.OpenFile(f.Place(), asked)
		if errors.Is(err, workspace.ErrFolder) {
			err = notAFile(asked)
		}
		return file, asked, err
	}
	file, name, info, err := f.openNamed(f.Scope, cmp.Or(sent, asked))
	if err == nil && info.IsDir() {
		file.Close()
		err = notAFile(asked)
	}
	return file, name, err
}

func notAFile(asked string) error {
	return refusal(fmt.Sprintf("%s is no file; name one file in it.", clip(asked)))
}
