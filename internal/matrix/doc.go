// Package matrix is the bot's place in Matrix: it logs in once, keeps the
// device, its keys and its identity, takes messages from encrypted rooms and
// sends replies. The types of mautrix and zerolog stop here.
//
// A message on its way in: sync → crypto → gate (who may talk) → one
// transaction with the sync token → inbox → deliver. A reply on its way out:
// Send → outbox row → package send → full room state known → encrypted and sent. Both
// queues are rows in bot.db, so that a message is answered once, whatever
// stops the program in between. docs/edits.md has what changes a message later.
//
// # Rooms
//
// A room is direct with a person who invited the bot to a direct chat, under whose name m.direct
// lists it, or for whom an owner set direct. A direct chat is private until a second person
// joins or everybody could read it (matrix_room.exposed, which is never reset). In groups a
// message is for the bot by m.mentions, a link to the bot or its full id, or as a reply to it;
// other messages wait in heard and come along as quotes. A replaced room is followed if the new
// one names it as predecessor, and an allowed person replaced it or invites the bot.
package matrix
