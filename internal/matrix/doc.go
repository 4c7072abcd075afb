// Package matrix is the bot's place in Matrix: it logs in once, keeps the
// device, its keys and its identity, takes messages from encrypted rooms and
// sends replies.
//
// A message on its way in: sync → crypto → gate (who may talk) → one
// transaction with the sync token → inbox → deliver. A reply on its way out:
// Say → outbox row → sender → full room state known → encrypt → send. Both
// queues are rows in bot.db, so that a message is answered once, whatever
// stops the program in between.
//
// The types of mautrix and zerolog stop here.
package matrix
