// Visits one page with Lighthouse and prints its report as JSON.
// From stdin: {url, browser, flags, categories, cookies: [{name, value}]}.

import { text } from "node:stream/consumers";

import lighthouse, { desktopConfig } from "lighthouse";
import puppeteer from "puppeteer-core";

const asked = JSON.parse(await text(process.stdin));
const browser = await puppeteer.launch({ executablePath: asked.browser, args: asked.flags });
try {
  // Into the browser's own jar: a header would reach the page, but not the parts it asks for later.
  await browser.setCookie(
    ...asked.cookies.map((cookie) => ({ ...cookie, domain: new URL(asked.url).hostname, path: "/" })),
  );
  const flags = { output: "json", onlyCategories: asked.categories };
  const result = await lighthouse(asked.url, flags, desktopConfig, await browser.newPage());
  process.stdout.write(result.report);
} finally {
  await browser.close();
}
