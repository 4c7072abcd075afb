package matrix

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/event/cmdschema"
	"maunium.net/go/mautrix/id"

	"reverie/internal/session"
)

// wordsKey is the one parameter of a command that takes words.
const wordsKey = "words"

// untold stands for the hash of a command of which clients may or may not have been told.
const untold = "?"

// publishAgain is when rooms are looked at without a reason: a description may have
// changed with a setting, or could not be told.
const publishAgain = time.Hour

// runPublish tells clients of our commands (MSC4391), as state of the rooms where our power
// allows that, so that they can offer them while somebody types.
func (c *Client) runPublish(ctx context.Context) error {
	if c.cfg.Commands == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.synced:
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.publishWake:
		case <-timer.C:
		}
		rooms, err := c.joinedRooms(ctx)
		for _, room := range rooms {
			if ctx.Err() == nil && err == nil {
				err = c.publish(ctx, room)
			}
		}
		next := publishAgain
		if err != nil && ctx.Err() == nil {
			c.log.Warn("matrix: commands not published; trying again", "err", err)
			next = c.pace.publish
			if verdict, wait := judge(err, 0); verdict == again {
				next = max(next, wait)
			}
		}
		timer.Reset(next)
	}
}

// Publish has clients told of our commands anew where they read otherwise now.
func (c *Client) Publish() { poke(c.publishWake) }

// publish brings what a room's state says of our commands up to date. What was told is
// noted after each, so that neither a restart nor another room tells it again.
func (c *Client) publish(ctx context.Context, room id.RoomID) error {
	levels, err := c.cli.StateStore.GetPowerLevels(ctx, room)
	if err != nil || levels == nil || levels.GetUserLevel(c.cli.UserID) < levels.GetEventLevel(event.StateMSC4391BotCommand) {
		return err
	}
	var stored string
	if err := c.q.db.QueryRowContext(ctx, `SELECT commands FROM matrix_room WHERE id = ?`, room).Scan(&stored); err != nil {
		return fmt.Errorf("look up what was published: %w", err)
	}
	told := map[string]string{}
	_ = json.Unmarshal([]byte(stored), &told) // what cannot be read is told again
	note := func(command, hash string) error {
		if told[command] = hash; hash == "" {
			delete(told, command)
		}
		b, err := json.Marshal(told)
		if err != nil {
			return err
		}
		_, err = c.q.db.ExecContext(ctx, `UPDATE matrix_room SET commands = ? WHERE id = ?`, string(b), room)
		return err
	}
	tell := func(command, hash string, content any) error {
		if told[command] == hash {
			return nil
		}
		if told[command] == "" { // first, so that it is known of whatever happens
			if err := note(command, untold); err != nil {
				return err
			}
		}
		if _, err := c.cli.SendStateEvent(ctx, room, event.StateMSC4391BotCommand, commandKey(command, c.cli.UserID), content); err != nil {
			if verdict, _ := judge(err, 0); verdict != never || ctx.Err() != nil {
				return err
			}
			c.log.Warn("matrix: a command is not published", "room", room, "command", command, "err", err)
		}
		if err := note(command, hash); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.pace.command):
			return nil
		}
	}
	now := map[string]bool{}
	for _, cmd := range c.cfg.Commands(ctx, room.String()) {
		now[cmd.Name] = true
		content := description(cmd)
		b, err := json.Marshal(content)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		if err := tell(cmd.Name, base64.RawStdEncoding.EncodeToString(sum[:9]), content); err != nil {
			return err
		}
	}
	for _, command := range slices.Sorted(maps.Keys(told)) {
		if !now[command] {
			if err := tell(command, "", struct{}{}); err != nil {
				return err
			}
		}
	}
	return nil
}

func commandKey(command string, owner id.UserID) string {
	return (&cmdschema.EventContent{Command: command}).StateKey(owner)
}

// description is a command as clients are told of it.
func description(c session.CommandInfo) *cmdschema.EventContent {
	d := &cmdschema.EventContent{Command: c.Name, Description: event.MakeExtensibleText(c.Help)}
	if c.Words {
		d.Parameters = []*cmdschema.Parameter{{Key: wordsKey, Schema: cmdschema.PrimitiveTypeString.Schema(), Optional: true}}
		d.TailParam = wordsKey
	}
	return d
}

// spelled is a command that a client has sent as such (MSC4391), as a person types it;
// "" = the message holds none, or not one for us alone.
func spelled(msg *event.MessageEventContent, self id.UserID) string {
	c := msg.MSC4391BotCommand
	if c == nil || !msg.Mentions.Has(self) || len(msg.Mentions.UserIDs) != 1 || strings.ContainsFunc(c.Command, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return ""
	}
	var args map[string]any
	if len(c.Arguments) > 0 && json.Unmarshal(c.Arguments, &args) != nil {
		return ""
	}
	words, _ := args[wordsKey].(string) // of another type: as if it were not there
	return strings.TrimSpace("!" + c.Command + " " + clean(words))
}
