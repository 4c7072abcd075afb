package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"maunium.net/go/mautrix"
)

// Raw returns one event as the server stores it, without decryption.
func (p *Peer) Raw(ctx context.Context, room, eventID string) (json.RawMessage, error) {
	url := p.client.BuildClientURL("v3", "rooms", room, "event", eventID)
	for try := 0; ; try++ {
		data, err := p.client.MakeRequest(ctx, http.MethodGet, url, nil, nil)
		if err == nil {
			return data, nil
		}
		// A busy Dendrite acknowledges an event a while before it can be fetched.
		if !errors.Is(err, mautrix.MNotFound) || try == 20 {
			return nil, fmt.Errorf("fetch event %s: %w", eventID, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// RawTimeline returns the newest limit events of a room, newest first, as the server stores them,
// without decryption.
func (p *Peer) RawTimeline(ctx context.Context, room string, limit int) (events []json.RawMessage, err error) {
	for from := ""; len(events) < limit; {
		query := map[string]string{"dir": "b", "limit": strconv.Itoa(limit - len(events))}
		if from != "" {
			query["from"] = from
		}
		var page struct {
			Chunk []json.RawMessage `json:"chunk"`
			End   string            `json:"end"`
		}
		url := p.client.BuildURLWithQuery(mautrix.ClientURLPath{"v3", "rooms", room, "messages"}, query)
		if _, err := p.client.MakeRequest(ctx, http.MethodGet, url, nil, &page); err != nil {
			return nil, fmt.Errorf("fetch timeline of %s: %w", room, err)
		}
		events = append(events, page.Chunk...) // a server limits the page, usually to a hundred
		if len(page.Chunk) == 0 || page.End == "" || page.End == from {
			break
		}
		from = page.End
	}
	return events, nil
}
