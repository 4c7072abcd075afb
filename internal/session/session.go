package session

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"reverie/internal/history"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/tool"
)

// Session owns the conversation of one room: it alone appends to its history,
// and it works on one message at a time.
type Session struct {
	*Manager
	room string
	log  *slog.Logger

	mu    sync.Mutex
	lane  []Inbound
	ready chan struct{} // holds a token while the lane may have work
}

func newSession(m *Manager, room string) *Session {
	return &Session{Manager: m, room: room, log: m.cfg.Log.With("room", room), ready: make(chan struct{}, 1)}
}

func (s *Session) push(in Inbound) {
	s.mu.Lock()
	s.lane = append(s.lane, in)
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *Session) pop() (Inbound, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lane) == 0 {
		return Inbound{}, false
	}
	in := s.lane[0]
	s.lane = s.lane[1:]
	return in, true
}

// Run answers the room's messages one after the other until ctx ends. The
// message in hand is worked on under work, which outlives ctx by the grace
// period.
func (s *Session) Run(ctx, work context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ready:
		}
		for ctx.Err() == nil {
			in, ok := s.pop()
			if !ok {
				break
			}
			s.handle(work, in)
		}
	}
}

// handle answers one message. Whatever goes wrong, the person hears of it;
// only a message interrupted by the end of the program stays unhandled, and
// is taken up again at the next start.
func (s *Session) handle(ctx context.Context, in Inbound) {
	log := s.log.With("message", in.ID, "sender", in.Sender)
	err := s.guarded(ctx, in)
	if ctx.Err() != nil {
		log.Info("interrupted by the end of the program; it will be taken up again at the next start")
		return
	}
	if err != nil {
		ref := reference()
		log.Error("message not answered", "err", err, "reference", ref)
		if err := s.notice(ctx, in, calm(err, ref)); err != nil {
			log.Error("notice not delivered", "err", err)
			return
		}
	}
	if err := s.cfg.Transport.Handled(ctx, in.ID); err != nil {
		log.Error("message not marked as handled; it may be answered again", "err", err)
	}
}

// guarded turns a panic into an error, so that one message cannot end the room.
func (s *Session) guarded(ctx context.Context, in Inbound) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic while answering", "message", in.ID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("session: panic: %v", p)
		}
	}()
	if err := s.remember(ctx, in); err != nil {
		return err
	}
	if name, args, ok := parseCommand(in.Text); ok {
		return s.command(ctx, in, name, args)
	}
	return s.turn(ctx, in)
}

// notice says text as a status line that answers in.
func (s *Session) notice(ctx context.Context, in Inbound, text string) error {
	return s.cfg.Transport.Say(ctx, s.room, Outgoing{ID: replyID(in), Text: text, Notice: true, ReplyTo: in.ID})
}

// replyID names the one reply to a message: the same message always gets the
// same name, so that saying it twice is saying it once.
func replyID(in Inbound) string { return "re:" + in.ID }

// scopes is the one place that decides whose memory a turn may see and write.
func (s *Session) scopes(in Inbound) []memory.Scope {
	return memory.Visible(s.room, in.Sender, in.Private)
}

func (s *Session) promptTurn(in Inbound, past []history.Message) prompt.Turn {
	window, out := s.cfg.Models.Window("chat")
	return prompt.Turn{
		Room: s.room, User: in.Sender, Scopes: s.scopes(in), Shared: !in.Private,
		Tools: s.cfg.Tools.Names(), ToolTokens: s.toolTokens,
		Now: s.cfg.Now().In(s.cfg.Location), Window: window, MaxOutput: out, History: past,
	}
}

func (s *Session) toolScope(in Inbound) tool.Scope {
	return tool.Scope{Room: s.room, User: in.Sender, Private: in.Private, Memory: s.scopes(in), Now: s.cfg.Now().In(s.cfg.Location)}
}

// oneLine folds white space and cuts to n runes, for lists in chat.
func oneLine(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}
