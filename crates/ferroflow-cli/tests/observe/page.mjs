// Looks at the dashboard in a real browser: node page.mjs job|hostile URL
// Screenshots go to DASHBOARD_SCREENSHOTS, if that is set.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.NODE_MODULES, 'x.js'));
const { chromium } = require('playwright-core');
const [what, url] = process.argv.slice(2);
const shots = process.env.DASHBOARD_SCREENSHOTS;
const DEADLINE = 120_000;

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const problems = [];
const check = (ok, text) => { if (!ok) problems.push(text); };

async function open(options) {
  const page = await (await browser.newContext(options)).newPage();
  page.setDefaultTimeout(DEADLINE);
  page.on('console', (message) => { if (message.type() === 'error') problems.push('console: ' + message.text()); });
  page.on('pageerror', (error) => problems.push('script: ' + error));
  page.on('request', (request) => check(request.url().startsWith(url) || request.url().startsWith('data:'), 'loads ' + request.url()));
  const answer = await page.goto(url);
  check((answer.headers()['content-security-policy'] || '').includes("default-src 'none'"), 'no content security policy');
  return page;
}

async function job() {
  const page = await open({ viewport: { width: 1400, height: 1000 }, colorScheme: 'light' });
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)[0]);
  console.log(`first paint after ${Math.round(paint)} ms`);
  // All five tasks, with steps, curves of all workers, a timeline, a placed graph and a checkpoint.
  await page.waitForFunction(() => document.querySelectorAll('#task-table tbody tr').length === 5, null, { timeout: DEADLINE });
  await page.waitForFunction(() => document.querySelectorAll('#loss polyline').length === 3, null, { timeout: DEADLINE });
  await page.waitForFunction(() => document.querySelectorAll('#steps rect.compute').length > 10, null, { timeout: DEADLINE });
  await page.waitForFunction(() => document.querySelectorAll('#map line.flow').length >= 3, null, { timeout: DEADLINE });
  await page.waitForFunction(() => document.querySelectorAll('#graph-view .node').length > 20, null, { timeout: DEADLINE });
  await page.waitForFunction(() => document.querySelectorAll('#checkpoint-list li').length > 0, null, { timeout: DEADLINE });
  await page.waitForFunction(() => document.querySelectorAll('#rate polyline')[0]?.getAttribute('points').split(' ').length > 8, null, { timeout: DEADLINE });
  const rate = await page.textContent('#figures dd');
  check(parseFloat(rate) > 0, `the step rate is ${rate}`);
  check(/ps 0/.test(await page.textContent('#shard-list')), 'no shard of ps 0');
  check(/worker 0 has started/.test(await page.textContent('#event-list')), 'no event of worker 0');
  // The steps are those of the job, not the sum of its three workers.
  const figure = async (name) => parseFloat(await page.textContent(`#figures div:has(dt:text-is("${name}")) dd`));
  const losses = await page.textContent('#loss svg');
  const reached = parseFloat([...losses.matchAll(/step ([\d.]+)/g)].pop()?.[1]);
  check(Math.abs(await figure('global step') - reached) < 0.5 * reached, `global step ${await figure('global step')} at ${losses}`);
  // The log of a task has what it did.
  await page.selectOption('#log-task', 'ps 1');
  await page.waitForFunction(() => /connection accepted/.test(document.querySelector('#log-lines').textContent), null, { timeout: DEADLINE });
  // Every picture and region has a name, every section a heading, and headings do not skip levels.
  const unnamed = await page.evaluate(() => [...document.querySelectorAll('svg[role=img], [role=region], [role=img]')]
    .filter((e) => !e.getAttribute('aria-label')).length);
  check(unnamed === 0, `${unnamed} pictures or regions without a name`);
  const headless = await page.evaluate(() => [...document.querySelectorAll('section')].filter((s) => !s.querySelector('h2')).length);
  check(headless === 0, 'a section without a heading');
  // With the keyboard: the first stop is the link to the content, and the button switches colours.
  await page.keyboard.press('Tab');
  check(await page.evaluate(() => document.activeElement.className === 'skip'), 'the first stop is not the skip link');
  const unseen = await page.evaluate(() => [...document.querySelectorAll('[tabindex="0"], a, button, select, summary')]
    .filter((e) => !e.hidden && e.className !== 'skip' && e.getClientRects().length > 0 && e.getBoundingClientRect().height < 8).map((e) => e.id));
  check(unseen.length === 0, `stops of the keyboard that cannot be seen: ${unseen}`);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.focus('#theme');
  await page.keyboard.press('Enter');
  check((await ground()) !== light, 'the button does not switch colours');
  await page.keyboard.press('Enter');
  check((await ground()) === light, 'the button does not switch back');
  await page.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
  if (shots) await page.screenshot({ path: join(shots, 'dashboard-light.png'), fullPage: true });
  const dark = await open({ viewport: { width: 1400, height: 1000 }, colorScheme: 'dark' });
  await dark.waitForFunction(() => document.querySelectorAll('#steps rect').length > 10, null, { timeout: DEADLINE });
  await dark.waitForTimeout(2500);
  check((await dark.evaluate(() => getComputedStyle(document.body).backgroundColor)) !== light, 'dark is not dark');
  if (shots) await dark.screenshot({ path: join(shots, 'dashboard-dark.png'), fullPage: true });
  const phone = await open({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 });
  await phone.waitForFunction(() => document.querySelectorAll('#steps rect').length > 10, null, { timeout: DEADLINE });
  await phone.waitForTimeout(2500);
  const wide = await phone.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
  check(wide <= 0, `the page is ${wide} px wider than a phone`);
  if (shots) await phone.screenshot({ path: join(shots, 'dashboard-phone.png'), fullPage: true });
}

async function hostile() {
  const page = await open({ viewport: { width: 1200, height: 900 } });
  const seen = (id) => page.waitForFunction((id) => document.querySelector(id)?.textContent.includes('onerror='), id, { timeout: DEADLINE });
  for (const id of ['#task-table', '#map', '#loss-title', '#log-lines', '#event-list', '#graph-list', '#graph-view', '#waits']) await seen(id);
  check(await page.evaluate(() => window.hacked === undefined), 'a script from outside has run');
  check((await page.locator('img').count()) === 0, 'markup from outside is on the page');
  check((await page.locator('script').count()) === 1, 'a script from outside is on the page');
  // Another site cannot read it, and another name of this host is refused.
  const evil = await (await browser.newContext()).newPage();
  await evil.goto('data:text/html,<p>evil</p>');
  const read = await evil.evaluate((url) => fetch(url + '/api/state').then((r) => r.text(), () => 'refused'), url);
  check(read === 'refused', 'another site has read the state');
}

try {
  await ({ job, hostile })[what]();
} catch (error) {
  problems.push(String(error));
  if (shots) for (const context of browser.contexts()) for (const page of context.pages()) await page.screenshot({ path: join(shots, 'failed.png'), fullPage: true }).catch(() => {});
}
await browser.close();
if (problems.length) {
  console.error([...new Set(problems)].join('\n'));
  process.exit(1);
}
