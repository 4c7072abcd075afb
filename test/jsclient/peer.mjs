// A person's Matrix client, built on matrix-js-sdk and its Rust encryption, so
// that the bot is read by an implementation it shares no code with.
//
// It is driven over pipes. Each line on standard input is a command:
//
//   {"id": 1, "do": "send", "room": "!r:hs", "text": "hello"}
//
// and gets exactly one line back, {"id": 1, "ok": {…}} or {"id": 1, "error": "…"}.
// What happens in between is told in lines of its own, {"event": "message", …}.
// The commands are the functions of `commands` below. When standard input ends,
// so does the program. The library's warnings go to standard error.

if (!Promise.withResolvers) { // the library wants it; Node has it from version 22 on
  Promise.withResolvers = function () {
    let resolve, reject;
    const promise = new this((a, b) => { resolve = a; reject = b; });
    return { promise, resolve, reject };
  };
}

for (const level of ['trace', 'debug', 'info', 'log']) console[level] = () => {};
for (const level of ['warn', 'error']) {
  console[level] = (...said) => {
    const text = said.map(String).join(' ');
    if (!text.includes(' push rule ')) process.stderr.write(`${level}: ${text.slice(0, 500)}\n`); // each homeserver lacks some
  };
}
const { createInterface } = await import('node:readline');
const sdk = await import('matrix-js-sdk');
const api = await import('matrix-js-sdk/lib/crypto-api/index.js');

const tell = line => process.stdout.write(JSON.stringify(line) + '\n');
const crypto = () => client.getCrypto();
let client;

// until waits for something that the sync will bring.
async function until(what, seconds, ready) {
  for (const end = Date.now() + seconds * 1000; ;) {
    const found = await ready();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await new Promise(r => setTimeout(r, 25));
  }
}

// ---- what is said in the rooms

const nameOf = (names, value) => (value === null || value === undefined ? '' : String(names[value]).toLowerCase());

// seen is what a client knows about how an event was encrypted.
async function seen(ev) {
  const info = ev.isEncrypted() ? await crypto().getEncryptionInfoForEvent(ev) : null;
  return {
    encrypted: ev.isEncrypted(),
    shield: info ? nameOf(api.EventShieldColour, info.shieldColour) : '',
    shield_reason: info ? nameOf(api.EventShieldReason, info.shieldReason) : '',
    session: ev.getWireContent().session_id ?? '',
  };
}

// message is an event as a client shows it, with the newest edit applied. The
// text below it for clients that know no edits is `fallback_html`.
async function message(ev) {
  const shown = ev.getContent();
  const edit = ev.replacingEvent();
  const newest = edit ?? ev;
  return {
    room: ev.getRoomId(), sender: ev.getSender(), id: ev.getId(), edit: edit?.getId() ?? '',
    msgtype: shown.msgtype ?? '', body: shown.body ?? '', html: shown.formatted_body ?? '',
    fallback_html: edit ? edit.getOriginalContent().formatted_body ?? '' : '',
    thread: ev.threadRootId ?? '',
    live: 'org.matrix.msc4357.live' in newest.getOriginalContent(),
    ...await seen(newest),
  };
}

const told = new Set(); // event ids: a sync and a decryption may both bring one

async function onEvent(ev) {
  if (ev.getSender() === client.getUserId() || ev.isBeingDecrypted()) return;
  if (ev.isDecryptionFailure()) {
    tell({ event: 'undecryptable', room: ev.getRoomId(), sender: ev.getSender(), id: ev.getId(), reason: String(ev.decryptionFailureReason) });
    return;
  }
  if (ev.getType() !== 'm.room.message' || told.has(ev.getId())) return;
  told.add(ev.getId());
  if (ev.isRelation('m.replace')) return; // told when it is applied to its message
  ev.on(sdk.MatrixEventEvent.Replaced, changed => void message(changed).then(m => tell({ event: 'message', ...m })));
  tell({ event: 'message', ...await message(ev) });
}

// ---- verification

const verifications = new Map(); // by the handle that is told

// follow tells each step of a verification. The side with `start` begins the
// comparison of emoji; the other one goes along when it is begun.
function follow(request, start) {
  const handle = `v${verifications.size + 1}`;
  const v = { request, start, sas: null, verifier: null, phase: 0 };
  verifications.set(handle, v);
  const step = more => tell({ event: 'verification', handle, phase: nameOf(api.VerificationPhase, request.phase), ...more });
  const compare = verifier => {
    if (v.verifier) return;
    v.verifier = verifier;
    const show = sas => {
      v.sas = sas;
      step({ emoji: (sas.sas.emoji ?? []).map(([picture]) => picture), names: (sas.sas.emoji ?? []).map(([, name]) => name), decimal: sas.sas.decimal ?? [] });
    };
    verifier.on(api.VerifierEvent.ShowSas, show);
    verifier.verify().catch(() => {}); // its end is told as a phase
    if (verifier.getShowSasCallbacks()) show(verifier.getShowSasCallbacks());
  };
  const changed = async () => {
    if (request.phase === v.phase) return;
    v.phase = request.phase;
    step(request.phase === api.VerificationPhase.Cancelled ? { code: request.cancellationCode ?? '', by: request.cancellingUserId ?? '' } : {});
    if (request.phase === api.VerificationPhase.Ready && v.start) compare(await request.startVerification('m.sas.v1'));
    if (request.phase === api.VerificationPhase.Started && request.verifier) compare(request.verifier);
  };
  const onChange = () => void changed().catch(e => step({ problem: String(e.message ?? e) }));
  request.on(api.VerificationRequestEvent.Change, onChange);
  onChange();
  return handle;
}

function verification(handle) {
  const v = verifications.get(handle);
  if (!v) throw new Error(`no verification ${handle}`);
  return v;
}

function comparison(handle) {
  const v = verification(handle);
  if (!v.sas) throw new Error(`verification ${handle} has shown no emoji yet`);
  return v.sas;
}

// ---- commands

const commands = {
  // login logs in with a new device and syncs. identity: make cross-signing
  // keys for the account (its first device). keys: what `keys` gave.
  async login({ homeserver, user, password, identity, keys }) {
    const identifier = { type: 'm.id.user', user };
    const { user_id, device_id, access_token } = await sdk.createClient({ baseUrl: homeserver })
      .loginRequest({ type: 'm.login.password', identifier, password, initial_device_display_name: 'matrix-js-sdk' });
    client = sdk.createClient({ baseUrl: homeserver, userId: user_id, accessToken: access_token, deviceId: device_id, timelineSupport: true });
    await client.initRustCrypto({ useIndexedDB: false });
    if (keys) await crypto().importRoomKeysAsJson(keys);
    client.on(sdk.RoomEvent.Timeline, ev => { if (!ev.isEncrypted()) void onEvent(ev); });
    client.on(sdk.MatrixEventEvent.Decrypted, ev => void onEvent(ev));
    await client.startClient({ initialSyncLimit: 20, threadSupport: true });
    await until('first sync', 30, () => client.isInitialSyncComplete());
    if (identity) {
      await crypto().bootstrapCrossSigning({
        authUploadDeviceSigningKeys: upload => upload(null).catch(refused =>
          upload({ type: 'm.login.password', identifier, password, session: refused.data?.session })),
      });
    }
    return { user: user_id, device: device_id, version: crypto().getVersion() };
  },

  // create makes a room; with `direct` as clients make a chat with one other.
  async create({ name, invite, direct, encrypted }) {
    const initial_state = encrypted ? [{ type: 'm.room.encryption', state_key: '', content: { algorithm: 'm.megolm.v1.aes-sha2' } }] : [];
    const { room_id } = await client.createRoom({ preset: direct ? 'trusted_private_chat' : 'private_chat', is_direct: Boolean(direct), name, invite, initial_state });
    await until(`room ${room_id}`, 30, () => client.getRoom(room_id));
    if (encrypted) await until(`encryption of room ${room_id}`, 30, () => crypto().isEncryptionEnabledInRoom(room_id));
    return { room: room_id };
  },

  async join({ room }) {
    await client.joinRoom(room);
    return {};
  },

  // joined waits until a user is in a room.
  async joined({ room, user }) {
    await until(`${user} joins ${room}`, 30, () => client.getRoom(room)?.getMember(user)?.membership === 'join');
    return {};
  },

  // send returns the Megolm session that the message was encrypted with. thread: the root of its thread.
  async send({ room, text, thread }) {
    const sent = (ev) => ev.getSender() === client.getUserId() && ev.getContent().body === text && !ev.status;
    const shown = () => [client.getRoom(room).getLiveTimeline(), ...client.getRoom(room).getThreads().map((t) => t.liveTimeline)]
      .flatMap((timeline) => timeline.getEvents());
    const before = new Set(shown().map((ev) => ev.getId()));
    let event_id = '';
    try {
      ({ event_id } = await client.sendTextMessage(room, thread || null, text));
    } catch (err) { // matrix-js-sdk fails so if its sync brings the message before the request to send it ends
      if (!String(err).includes('not a local echo')) throw err;
    }
    const ev = await until(`own message ${event_id}`, 30, () => event_id ? client.getRoom(room)?.findEventById(event_id)
      : shown().find((ev) => sent(ev) && !before.has(ev.getId())));
    return { event: ev.getId(), session: ev.getWireContent().session_id ?? '' };
  },

  // history reads a room from the server, newest last, edits as messages.
  async history({ room, limit }) {
    const { chunk } = await client.createMessagesRequest(room, null, limit, sdk.Direction.Backward);
    const messages = [];
    for (const ev of chunk.reverse().map(client.getEventMapper({ decrypt: false }))) {
      if (ev.isState()) continue;
      await client.decryptEventIfNeeded(ev);
      const replaces = ev.getWireContent()['m.relates_to']?.rel_type === 'm.replace' ? ev.getWireContent()['m.relates_to'].event_id : '';
      messages.push({ ...await message(ev), replaces, type: ev.getType(), reason: ev.isDecryptionFailure() ? String(ev.decryptionFailureReason) : '' });
    }
    return { messages };
  },

  // keys are the room keys of this device, for a login that follows.
  async keys() {
    return { keys: await crypto().exportRoomKeysAsJson() };
  },

  // discard ends the outbound session: the next message begins a new one.
  async discard({ room }) {
    await crypto().forceDiscardSession(room);
    return {};
  },

  // strict leaves out devices that their owner has not cross-signed, as
  // clients do that hide insecure devices: no keys for them, nothing read.
  async strict({ on }) {
    crypto().setDeviceIsolationMode(on ? new api.OnlySignedDevicesIsolationMode() : new api.AllDevicesIsolationMode(false));
    return {};
  },

  // trust is what this client thinks of a user and of their devices. verified:
  // wait until it thinks them verified; the proof comes back from the server.
  async trust({ user, verified }) {
    const identity = await crypto().userHasCrossSigningKeys(user, true);
    const judge = async () => crypto().getUserVerificationStatus(user);
    const status = verified ? await until(`${user} is verified`, 15, async () => { const s = await judge(); return s.isCrossSigningVerified() && s; }) : await judge();
    const devices = [];
    for (const [id] of (await crypto().getUserDeviceInfo([user], true)).get(user) ?? []) {
      const s = await crypto().getDeviceVerificationStatus(user, id);
      devices.push({ device: id, signed_by_owner: s?.signedByOwner ?? false, verified: s?.crossSigningVerified ?? false });
    }
    return { identity, verified: status.isCrossSigningVerified(), needs_approval: status.needsUserApproval, devices };
  },

  // verify asks a user for verification: in the room, or by messages to one
  // device. start: begin comparing emoji as soon as the other side is ready.
  async verify({ user, room, device, start = true }) {
    const request = device ? await crypto().requestDeviceVerification(user, device) : await crypto().requestVerificationDM(user, room);
    return { handle: follow(request, start) };
  },

  // confirm: the emoji are the same. mismatch: they are not.
  async confirm({ handle }) {
    await comparison(handle).confirm();
    return {};
  },
  async mismatch({ handle }) {
    comparison(handle).mismatch();
    return {};
  },
  async cancel({ handle }) {
    await verification(handle).request.cancel();
    return {};
  },
};

process.on('unhandledRejection', e => process.stderr.write(`unhandled: ${e?.stack ?? e}\n`));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, do: name, ...args } = JSON.parse(line);
  const command = Object.hasOwn(commands, name) ? commands[name] : () => { throw new Error('there is no such command'); };
  // Not awaited: a command that waits must not hold up another.
  Promise.resolve().then(() => command(args)).then(ok => tell({ id, ok }), e => tell({ id, error: `${name}: ${e.message ?? e}` }));
}
client?.stopClient();
process.exit(0);
