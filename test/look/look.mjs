// A person at a web client: reads commands, one JSON object a line, and answers
// each with one line, {"ok": …} or {"error": "…"}. Ends with its input.
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const [, , executablePath, profile] = process.argv;
const browser = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  viewport: { width: 1100, height: 900 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const page = browser.pages()[0] ?? (await browser.newPage());
page.setDefaultTimeout(60_000);
page.on('pageerror', (e) => console.error('page:', e.message));
page.on('console', (m) => { if (m.type() === 'error') console.error('console:', m.text().slice(0, 300)); });

const composer = '.MessageComposer textarea';
const commands = {
  async login({ address, user, password }) {
    await page.goto(address);
    await page.fill('input#username', user);
    await page.fill('input#password', password);
    await page.click('.PasswordLoginView button[type=submit]');
    await page.waitForSelector('.RoomList');
  },
  async open({ room }) {
    await page.click(`.RoomList li:has-text("${room}") a`);
    await page.waitForSelector(`.RoomHeader :text("${room}")`);
    await page.waitForSelector(composer);
  },
  async say({ text }) {
    await page.fill(composer, text);
    await page.press(composer, 'Enter');
  },
  // wait for text in the timeline, in the element that the selector names
  async wait({ text, within }) {
    await page.waitForSelector(`.Timeline ${within ?? ''} :text("${text}")`, { state: 'attached' });
  },
  // what the expression is in the page
  async value({ expression }) {
    return page.evaluate(expression);
  },
  async shot({ path, at }) {
    if (at) await page.locator(`.Timeline :text("${at}")`).first().scrollIntoViewIfNeeded();
    await page.waitForTimeout(500); // pictures and fonts
    await page.screenshot({ path });
  },
};
console.log(JSON.stringify({ ok: browser.browser()?.version() ?? true }));
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  try {
    console.log(JSON.stringify({ ok: (await commands[command.do](command)) ?? true }));
  } catch (e) {
    console.log(JSON.stringify({ error: `${command.do}: ${e.message.slice(0, 1000)}` }));
  }
}
await browser.close();
