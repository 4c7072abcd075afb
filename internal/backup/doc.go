// Package backup copies a data folder into one file while the bot runs, and restores it.
//
// A backup is a tar archive, compressed with gzip and, with a passphrase, encrypted by age. It holds
// a consistent copy of bot.db, then all other files, and last a manifest with the SHA-256 of each. bot.db
// comes first: a memory file that is newer is read as edited, while one that is older would look as if
// its owner had deleted memories.
//
// Left out are what another machine must not use (the login of the device), what belongs to a running
// process (locks, write-ahead logs), and links, which may lead anywhere.
//
// # After a restore
//
// The bot is a new device: the Olm sessions in the backup have been used further since, so using them
// again would make messages unreadable. The login is not in the backup, and cmd/bot has package account
// set the device's keys aside. Room keys stay, and newer ones come from the account's key backup, which
// the recovery key opens; so does the signature of the new device.
//
// The homeserver has all that was said since the backup. Each event of the bot names the row of the
// outbox that it carries and the messages that it answers (see matrix/send). Before anything else,
// matrix.Open reads the rooms back to the last event that the backup knows. What the bot has said
// since becomes sent rows of the outbox, so nothing is sent twice, and what that answered becomes
// handled rows of the inbox, so nothing is answered twice. An answer that was cut off is redacted, and
// given again. The first sync of the new device then adds the messages since the backup that are not
// handled: they are answered, unless they are older than an hour, when each room is told instead.
// Reactions and votes since the backup are dropped: whether a tool has run for them is unknown. A task
// that was run since the backup is not run again if it said something.
//
// Messages that were encrypted for the lost device alone, because their room key was never backed up,
// stay unreadable; their sender is told.
package backup
