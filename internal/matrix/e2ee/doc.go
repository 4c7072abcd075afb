// Package e2ee is the bot's end-to-end encryption: the identity of its account, the key backup,
// the crypto store, and the rule that says which devices of others are trusted.
//
// The first start creates the account's cross-signing identity, signs the device, writes
// matrix/recovery.key and creates a key backup. A new device with that recovery key is signed
// again and restores the old keys.
//
// matrix.devices says whose devices must be signed by their identity (owners, signed, any). The
// rule holds for people whose cross-signing identity was ever seen, so that a homeserver cannot
// hide it. Devices checks each decrypted message by the device that its megolm session proves;
// roomkeys.go shares the outbound session with admitted devices only. After an identity changed,
// and until !verify, all devices of that person get keys: they must be able to read the warning.
// An unencrypted room proves no device, so people whom the rule covers are neither private nor
// owners there.
package e2ee
