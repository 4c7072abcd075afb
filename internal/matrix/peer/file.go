package peer

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto/attachment"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// File is a file in a room.
type File struct {
	Name    string
	Caption string // text beside the file
	Type    string // MIME type that the sender claims
	Voice   bool   // a voice message
	Image   bool   // an m.image message
	Width   int    // pixels of an image, as the sender claims
	Sealed  bool   // encrypted
	Size    int    // as the sender claims; 0 = len(Data)
	Data    []byte
	Mention string // user ID to mention, or empty
	Thread  string // root of its thread; empty = main timeline
	Edits   string // the message that it replaces; empty = a new one
}

// SendFile uploads and sends a file, encrypted if the room is or f.Sealed is set. change may modify
// the content before; nil = no change.
func (p *Peer) SendFile(ctx context.Context, room string, f File, change func(*event.MessageEventContent)) (eventID string, err error) {
	if err := p.untilSynced(ctx); err != nil {
		return "", err
	}
	p.sending.Lock()
	err = p.ensureState(ctx, id.RoomID(room))
	p.sending.Unlock()
	if err != nil {
		return "", err
	}
	size := f.Size
	if size == 0 {
		size = len(f.Data)
	}
	m := &event.MessageEventContent{MsgType: event.MsgFile, Body: f.Name, Mentions: &event.Mentions{}, Info: &event.FileInfo{MimeType: f.Type, Size: size}}
	switch {
	case f.Image:
		m.MsgType = event.MsgImage
	case f.Voice:
		m.MsgType, m.MSC3245Voice = event.MsgAudio, &event.MSC3245Voice{}
	}
	if f.Caption != "" {
		m.Body, m.FileName = f.Caption, f.Name
	}
	m.Mentions.Add(id.UserID(f.Mention))
	if f.Thread != "" {
		m.RelatesTo = (&event.RelatesTo{}).SetThread(id.EventID(f.Thread), id.EventID(f.Thread))
	}
	data, kind := f.Data, f.Type
	sealed := f.Sealed
	if !sealed {
		if sealed, err = p.client.StateStore.IsEncrypted(ctx, id.RoomID(room)); err != nil {
			return "", err
		}
	}
	if sealed {
		m.File = &event.EncryptedFileInfo{EncryptedFile: *attachment.NewEncryptedFile()}
		data, kind = bytes.Clone(data), "application/octet-stream"
		m.File.EncryptInPlace(data)
	}
	up, err := p.client.UploadMedia(ctx, mautrix.ReqUploadMedia{ContentBytes: data, ContentType: kind})
	if err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	if m.File != nil {
		m.File.URL = up.ContentURI.CUString()
	} else {
		m.URL = up.ContentURI.CUString()
	}
	if f.Edits != "" {
		m.SetEdit(id.EventID(f.Edits))
	}
	if change != nil {
		change(m)
	}
	return p.send(ctx, room, m)
}

// fileOf returns the file of a message content, without its data.
func fileOf(m *event.MessageEventContent) *File {
	switch m.MsgType {
	case event.MsgFile, event.MsgImage, event.MsgAudio, event.MsgVideo:
	default:
		return nil
	}
	f := &File{Name: m.GetFileName(), Caption: m.GetCaption(), Voice: m.MSC3245Voice != nil, Image: m.MsgType == event.MsgImage, Sealed: m.File != nil}
	if m.Info != nil {
		f.Type, f.Size, f.Width = m.Info.MimeType, m.Info.Size, m.Info.Width
	}
	return f
}

// Download fetches and decrypts the file of an event.
func (p *Peer) Download(ctx context.Context, e Event) ([]byte, error) {
	if e.content == nil {
		return nil, fmt.Errorf("%s is no file", e.ID)
	}
	url := e.content.URL
	if e.content.File != nil {
		url = e.content.File.URL
	}
	uri, err := url.Parse()
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Download(ctx, uri)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && e.content.File != nil {
		err = e.content.File.DecryptInPlace(data)
	}
	return data, err
}
