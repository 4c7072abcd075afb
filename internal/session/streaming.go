package session

import "context"

// streams tells whether the answer to in may be seen while it is written. Where more
// than two are, half an answer only makes noise, unless the room wants it.
func (s *Session) streams(ctx context.Context, in Inbound) bool {
	set, err := s.settings().Get(ctx, s.room, SettingStreaming)
	switch {
	case err != nil:
		s.log.Warn("whether to stream here is not known", "err", err)
		return false
	case set != settingAuto:
		return set == "on"
	case in.Private || s.cfg.People == nil:
		return in.Private
	}
	n, err := s.cfg.People(ctx, s.room)
	return err == nil && n > 0 && n <= 2
}
