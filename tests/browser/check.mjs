// Opens a report in Chromium and prints, as JSON on standard output, what a person would find there.
//
//   node check.mjs REPORT.html [--pictures DIR]
//
// It judges nothing; the test that runs it does.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [file, option, directory] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // As root, Chromium runs only without its sandbox; it opens nothing but our own page here.
  args: process.getuid() === 0 ? ["--no-sandbox"] : [],
});
const found = { errors: [], requests: [], owned: [] };

// A page in its own browser context, with its errors and the requests it makes for other files.
async function open(options) {
  const context = await browser.newContext({ bypassCSP: false, acceptDownloads: true, reducedMotion: "reduce", ...options });
  // On a busy machine, Chromium may draw no frame for half a minute.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && found.errors.push(message.text()));
  page.on("pageerror", (error) => found.errors.push(String(error)));
  page.on("dialog", (dialog) => (found.owned.push(dialog.message()), dialog.dismiss()));
  const own = pathToFileURL(file).href;
  page.on("request", (request) => {
    const address = request.url();
    if (address.split("#")[0] !== own && !/^(data|blob):/.test(address)) found.requests.push(address);
  });
  const begin = Date.now();
  await page.goto(own);
  return { page, ms: Date.now() - begin, close: () => context.close() };
}

// Unlike Playwright's scrolling, this doesn't first wait until the element stops moving, which it does as charts are drawn.
const scrollTo = (element) => element.evaluate((found) => found.scrollIntoView({ block: "center" }));

// Charts are drawn when they are scrolled near.
async function scroll(page) {
  for (const chart of await page.locator(".chart").all()) {
    await scrollTo(chart);
    await chart.locator("svg").first().waitFor({ state: "attached" });
  }
  await page.waitForFunction(() => document.querySelectorAll(".chart").length === document.querySelectorAll(".chart.drawn svg").length);
}

// Looks for what is wider than the screen, and takes a picture if wanted.
async function view(name, page) {
  found[`${name}_overflow`] = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (option === "--pictures") {
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: `${directory}/${name}.png`, fullPage: true });
  }
}

const marks = (page) =>
  page.$$eval(".chart", (charts) => charts.map((chart) => chart.querySelectorAll(".mark-rect path, .mark-symbol path, .mark-line path").length));

const { page, ms, close } = await open({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
found.opened_ms = ms;
await scroll(page);
found.title = await page.title();
await view("light", page);
found.charts = await marks(page);
found.widths = await page.$$eval(".chart svg", (all) => all.map((svg) => svg.getBoundingClientRect().width));
found.owned.push(...(await page.evaluate(() => Object.keys(window).filter((key) => key.startsWith("owned")))));
// Markup that only an attack would add: the page has no pictures, frames, outside links or inline handlers.
found.strange = await page.$$eval("img, iframe, object, embed, base, form:not(.vega-bindings), [onerror], [onload], [onclick], a[href^='http'], a[href^='javascript']", (all) => all.map((e) => e.outerHTML.slice(0, 200)));
found.text = await page.evaluate(() => document.body.innerText);

// Tooltips, by hovering over the last mark of each chart.
found.tips = [];
for (const chart of await page.locator(".chart").all()) {
  await scrollTo(chart);
  const mark = chart.locator(".mark-symbol path, .mark-rect path").last();
  if ((await mark.count()) === 0) continue;
  await scrollTo(mark);
  // Scrolling hides the tooltip and may still go on, so move the pointer again until it stays.
  let words = "";
  for (let tries = 0; tries < 20 && words === ""; tries++) {
    const box = await mark.boundingBox();
    if (!box) break;
    await page.mouse.move(2, 2);
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.waitForTimeout(50);
    words = await page.$eval("#tip", (tip) => (tip.hidden ? "" : tip.innerText));
  }
  found.tips.push(words);
  await page.mouse.move(2, 2);
}

// The legend hides marks by key and by mouse.
found.legends = [];
for (const legend of await page.locator(".legend").all()) {
  const chart = legend.locator("xpath=ancestor::div[@class='panel']").locator('.chart');
  const count = () => chart.locator(".mark-symbol path, .mark-rect path, .mark-line path").count();
  const before = await count();
  const first = legend.locator("button").first();
  await first.focus();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(60);
  const hidden = await count();
  await first.click();
  await page.waitForTimeout(60);
  found.legends.push({ before, hidden, after: await count() });
}

// Downloads.
const taken = async (locator) => {
  const [download] = await Promise.all([page.waitForEvent("download"), locator.click()]);
  const bytes = readFileSync(await download.path());
  return { name: download.suggestedFilename(), bytes: bytes.length, begin: bytes.subarray(0, 60).toString("latin1") };
};
if (found.charts.length > 0) {
  found.svg = await taken(page.locator("[data-save=svg]").first());
  found.png = await taken(page.locator("[data-save=png]").first());
}
const [raw] = await Promise.all([page.waitForEvent("download"), page.locator("[data-raw]").first().click()]);
const json = JSON.parse(readFileSync(await raw.path(), "utf8"));
found.raw = { schema: json.schema, trials: json.trials.length, samples: json.trials.reduce((n, t) => n + t.samples.length, 0) };

const violations = async (page) => {
  await page.$$eval("details", (all) => all.forEach((details) => (details.open = true)));
  // The page's content security policy would block axe too.
  const session = await page.context().newCDPSession(page);
  await session.send("Page.setBypassCSP", { enabled: true });
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(" | ")}`);
};
found.axe = await violations(page);

// Printing draws all charts, including those never scrolled to.
const unseen = await open({ viewport: { width: 900, height: 400 }, colorScheme: "dark" });
await unseen.page.evaluate(() => dispatchEvent(new Event("beforeprint")));
await unseen.page.waitForTimeout(200);
found.printed = (await marks(unseen.page)).filter((count) => count > 0).length;
await unseen.page.evaluate(() => dispatchEvent(new Event("afterprint")));
await unseen.close();

for (const [name, options] of [
  ["dark", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 }, colorScheme: "light", hasTouch: true, isMobile: true }],
]) {
  const { page, close } = await open(options);
  await scroll(page);
  await view(name, page);
  if (name === "dark") found.axe_dark = await violations(page);
  await close();
}
await close();
await browser.close();
console.log(JSON.stringify(found));
