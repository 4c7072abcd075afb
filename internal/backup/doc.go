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
// The manual (Backups) says what people meet. The bot is a new device: the Olm sessions in the backup have
// been used further since, so using them again would make messages unreadable. Room keys stay, and newer
// ones come from the account's key backup, which the recovery key opens; so does the signature of the device.
//
// Each event of the bot names the row of the outbox that it carries and the messages that it answers (see
// matrix/send). Before anything else, matrix.Open reads the rooms back to the last event that the backup
// knows: what the bot has said since becomes sent rows of the outbox, and what that answered handled rows
// of the inbox, so nothing is sent or answered twice.
package backup
