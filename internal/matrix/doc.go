// Package matrix connects the bot to Matrix. It logs in once, keeps the device, its keys and its
// cross-signing identity, receives messages from encrypted rooms and sends replies. Code outside
// internal/matrix must not use the types of mautrix and zerolog.
//
// An incoming message passes: sync → decryption → gate (who may talk) → one transaction with the
// sync token → inbox → Deliver. A reply passes: Send → outbox row → package send → complete room
// state → encryption → homeserver. Both queues are tables of bot.db, so a message is answered
// once even if the program is killed in between. docs/edits.md describes later changes.
//
// # Rooms
//
// A room is a direct chat if its inviter marked it so, if m.direct lists it, or if an owner set
// it. A direct chat is private until a second person joins or its history is world-readable
// (matrix_room.exposed, which is never reset). In groups a message is addressed to the bot by
// m.mentions, a link to the bot, its full user ID, or as a reply to it. Other messages are stored
// as group context and quoted with the next question. The bot follows a tombstone if the new
// room names the old one as predecessor, and an allowed person replaced it or invites the bot.
package matrix
