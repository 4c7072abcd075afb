package peer

import (
	"log/slog"
	"strconv"
	"testing"
)

func TestUnreadEventsGiveWayToNewOnes(t *testing.T) {
	p := &Peer{events: make(chan Event, 3), log: slog.New(slog.DiscardHandler)}
	for i := range 5 { // with no reader at all
		p.emit(Event{Body: strconv.Itoa(i)})
	}
	var got string
	for range 3 {
		got += (<-p.Events()).Body
	}
	if got != "234" || p.dropped != 2 {
		t.Errorf("kept %q and dropped %d, want the newest three and 2", got, p.dropped)
	}
}
