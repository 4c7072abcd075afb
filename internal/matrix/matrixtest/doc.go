// Package matrixtest is a fake Matrix homeserver for tests: in memory, fast, and with faults on
// demand. It implements the part of the Client-Server API that the bot and its peers use, like
// Dendrite v0.15.2; TestTwin asks both the same questions and compares the answers.
//
// A test that passes here proves only that our side works with this package. The tests against the
// real homeserver decide if the two differ.
//
// Known differences:
//
//   - There is one server and no federation, no guests, no application services,
//     no presence, no search, no spaces, no threads API, no pages of relations, no
//     thumbnails, no push rules that do anything, no e-mail.
//   - Nothing is stored: after Stop and Start the data of the process is still there, like on the
//     disk of a restarted server. Like Dendrite it forgets transaction IDs and typing notices.
//   - Events have no auth chain, no hashes and no signatures. Power levels count,
//     history visibility does not: new members can read the whole history.
//   - State is never resolved: the last writer wins.
//   - Signatures of keys are stored and returned, and never checked.
//   - Fallback keys are understood as the specification says; Dendrite v0.15.2
//     ignores them.
//   - Lazy loading of members is ignored: all state is always sent. Filters know
//     types, not_types and the timeline's limit.
//   - Tokens are readable (s12, t11). No client may rely on that.
//   - Dendrite has oddities that no client depends on: it shows an invitation as state before it
//     shows it as an event, moves m.room.create to the state of a newly joined room, and invents an
//     event for a declined invitation. The fake does not; TestTwin names these places.
//   - Everything happens at once: an event is in every /sync as soon as /send has answered. A real
//     server takes a while and may split simultaneous events into two responses.
package matrixtest
