// Everything works without this file. It logs in with the code of a link, loads the overview again
// from time to time, and lets / begin a search.
'use strict';

const code = document.querySelector('input[name=code]');
if (code && location.hash.length > 1) {
  code.value = location.hash.slice(1);
  history.replaceState(null, '', location.pathname); // the code stays in no history
  code.form.requestSubmit();
}

document.addEventListener('keydown', (event) => {
  const field = document.querySelector('input[type=search]');
  if (event.key === '/' && field && document.activeElement.tagName !== 'INPUT') {
    event.preventDefault();
    field.focus();
  }
});

async function refresh() {
  if (document.hidden) return;
  const answer = await fetch(location.href, { redirect: 'error' });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const now = page.querySelector('main');
  if (now) document.querySelector('main').replaceWith(now);
}

if (document.body.classList.contains('fresh')) {
  setInterval(() => refresh().catch(() => {}), 15000);
}
