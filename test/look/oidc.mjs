// Two people at the inspector, by way of an OpenID Connect provider that runs here: anna, who is the owner, and otto, who
// is nobody. Prints what they saw: {"owner": {"status": …, "text": …}, …}. Pictures go to a folder.
import { chromium } from 'playwright-core';
import Provider from 'oidc-provider';

console.info = console.error; // the provider's notices
const [, , executablePath, pictures, issuer, inspector] = process.argv;
const provider = new Provider(issuer, {
  clients: [{ client_id: 'reverie', client_secret: 's3cret', redirect_uris: [`${inspector}/login/callback`] }],
  pkce: { required: () => true },
  claims: { openid: ['sub'], email: ['email', 'email_verified'] }, // what a scope asks for is in the userinfo, not in the token
  findAccount: (_, name) => ({ accountId: name, claims: () => ({ sub: name, email: `${name}@example.org`, email_verified: true }) }),
});
const server = provider.listen(new URL(issuer).port, '127.0.0.1');
const browser = await chromium.launch({
  executablePath, headless: true, args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
});
const saw = {};

// signIn goes from the inspector to the provider and back.
async function signIn(name) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  await page.goto(inspector);
  await page.click('a[href="/login/begin"]');
  await page.waitForURL(`${issuer}/interaction/*`);
  await page.screenshot({ path: `${pictures}/oidc-provider.png` });
  await page.fill('input[name=login]', name);
  await page.fill('input[name=password]', 'any');
  await page.click('button[type=submit]');
  const back = page.waitForResponse((r) => r.url().startsWith(`${inspector}/login/callback?`));
  await page.click('button[type=submit]'); // the consent
  const answer = await back;
  return { context, page, answer, cookie: /reverie_oidc=([^;]*)/.exec((await answer.request().allHeaders()).cookie)?.[1] };
}

async function note(what, page, answer) {
  await page.waitForLoadState();
  saw[what] = { status: answer.status(), path: new URL(page.url()).pathname, text: await page.innerText('body') };
  await page.screenshot({ path: `${pictures}/oidc-${what}.png` });
}

const anna = await signIn('anna');
await anna.page.waitForURL(`${inspector}/`).catch(() => {});
await note('owner', anna.page, anna.answer);
for (const what of ['replayed', 'replayed-with-cookie']) {
  await note(what, anna.page, await anna.page.goto(anna.answer.url()));
  await anna.context.addCookies([{ name: 'reverie_oidc', value: anna.cookie, url: anna.answer.url() }]);
}
const otto = await signIn('otto');
await note('stranger', otto.page, otto.answer);
await note('stranger-later', otto.page, await otto.page.goto(inspector));
await browser.close();
server.close();
server.closeAllConnections();
console.log(JSON.stringify(saw));
