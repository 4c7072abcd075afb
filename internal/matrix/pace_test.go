package matrix

import "time"

// Hurry makes a client of this configuration wait for little.
func (cfg *Config) Hurry() {
	cfg.pace = &pace{poll: 300 * time.Millisecond, slack: 2 * time.Second, askKey: 20 * time.Millisecond, keyWait: 300 * time.Millisecond, again: 10 * time.Millisecond, echo: 20 * time.Millisecond, restart: 200 * time.Millisecond, refuse: 10 * time.Millisecond}
}

// FetchWithin bounds how long the files of a message may take; after Hurry.
func (cfg *Config) FetchWithin(d time.Duration) { cfg.pace.fetch = d }

// AtOnce is how many messages of a room are handed over before one is handled.
const AtOnce = atOnce

// GapEvents is how many missed events are fetched.
const GapEvents = gapEvents
