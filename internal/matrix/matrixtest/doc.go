// Package matrixtest is a double of a Matrix homeserver, for tests: one process,
// in memory, fast, and with faults on demand. It speaks the part of the
// Client-Server API that the bot and its peers use, in the way Dendrite v0.15.2
// does; TestTwin asks both the same questions and compares the answers.
//
// A test that passes here proves that our side copes with what this package does,
// and no more. The tests against the real homeserver stand beside it and decide
// when the two differ.
//
// Where it is unfaithful:
//
//   - There is one server and no federation, no guests, no application services,
//     no presence, no search, no spaces, no threads API, no pages of relations, no
//     thumbnails, no push rules that do anything, no e-mail.
//   - Nothing is stored: Stop and Start keep the data of the process, as a
//     restarted server would find it on its disk. Like Dendrite it forgets
//     transaction ids and who is typing by that.
//   - Events have no auth chain, no hashes and no signatures. Power levels count,
//     history visibility does not: who joins can read all that was said before.
//   - State is never resolved: the last writer wins.
//   - Signatures of keys are stored and handed out, and never checked.
//   - Fallback keys are understood as the specification says; Dendrite v0.15.2
//     ignores them.
//   - Lazy loading of members is ignored: all state is always sent. Filters know
//     types, not_types and the timeline's limit.
//   - Tokens are readable (s12, t11). Nobody may rely on that.
//   - Dendrite is odd in places that no client depends on: it shows an invitation
//     as state before it shows it as an event, moves m.room.create to the state of
//     a room just joined, and makes up an event for a declined invitation. The
//     double does not; TestTwin names these places.
//   - Everything happens at once: an event is in every /sync as soon as /send has
//     answered. A real server takes a while, and some things of one moment come in
//     two answers there.
package matrixtest
