// An owner at the inspector: logs in with a link, with and without JavaScript, follows every link, and prints
// {"pages": N, "problems": […]}. Pictures go to a folder.
import { chromium } from 'playwright-core';

const [, , executablePath, pictures, withScript, withoutScript] = process.argv;
const browser = await chromium.launch({ executablePath, headless: true, args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'] });
const shownTurn = 'What do you know about Jana?'; // the turn in the pictures
const problems = [];
let pages = 0;

async function walk(link, javaScriptEnabled) {
  const context = await browser.newContext({ javaScriptEnabled, viewport: { width: 1100, height: 860 } });
  const page = await context.newPage();
  let at = link;
  const note = (text) => problems.push(`${javaScriptEnabled ? 'with' : 'without'} JavaScript: ${at}: ${text}`);
  page.on('pageerror', (e) => note(e.message));
  page.on('console', (m) => { if (m.type() === 'error' || m.type() === 'warning') note(m.text()); });
  page.on('request', (r) => { if (new URL(r.url()).origin !== new URL(link).origin && !r.url().startsWith('data:')) note(`asks ${r.url()}`); });
  await page.goto(link);
  if (!javaScriptEnabled) {
    await page.fill('input[name=code]', new URL(link).hash.slice(1));
    await page.click('form.login button');
  }
  await page.waitForSelector('nav');
  if (new URL(page.url()).pathname !== '/' || page.url().includes('#')) note(`the login ends at ${page.url()}`);
  let turn = '';
  const found = [new URL('/', link).href];
  const kinds = {}; // how many pages of each kind were found; a dozen of each is enough
  for (let i = 0; i < found.length; i++) {
    at = found[i];
    const answer = await page.goto(at);
    pages++;
    if ((await page.textContent('h1')).includes(shownTurn)) turn = at;
    if (answer.status() !== 200) note(`status ${answer.status()}`);
    if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) note('is wider than the window');
    for (const href of await page.$$eval('main a, nav a', (all) => all.map((a) => a.href.baseVal ?? a.href))) {
      const next = new URL(href, at);
      next.hash = '';
      const kind = next.pathname.split('/')[1] + next.pathname.split('/').length + (next.search ? '?' : '');
      if (next.origin !== new URL(link).origin || found.includes(next.href) || kinds[kind] >= 12) continue;
      kinds[kind] = (kinds[kind] ?? 0) + 1;
      found.push(next.href);
    }
  }
  if (javaScriptEnabled) {
    at = 'pictures';
    for (const [name, address, colorScheme, width, height] of [
      ['memories', '/memories', 'light', 1000, 720], ['turn', turn, 'dark', 1000, 900], ['usage', '/usage', 'dark', 1000, 1250],
      ['subsessions', '/subsessions', 'light', 1000, 760], ['phone', '/', 'light', 390, 860], ['phone-turn', turn, 'dark', 390, 860],
      ['phone-usage', '/usage', 'light', 390, 860],
    ]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height });
      await page.goto(new URL(address, link).href);
      if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) note(`${name} is wider than the window`);
      await page.evaluate(() => [...document.querySelectorAll('h2')].find((h) => h.textContent.startsWith('Request'))?.scrollIntoView({ block: 'center' }));
      await page.screenshot({ path: `${pictures}/inspector-${name}.png` });
    }
    at = 'a change';
    await page.goto(new URL(found.find((a) => new URL(a).pathname.startsWith('/memories/')), link).href);
    await page.click('form[action="/undo"] button');
    if (await page.textContent('h1') !== 'Undone') note('cannot undo');
    await page.click('header form button');
    if (new URL(page.url()).pathname !== '/login') note('cannot log out');
  }
  await context.close();
}

await walk(withScript, true);
await walk(withoutScript, false);
await browser.close();
console.log(JSON.stringify({ pages, problems }));
