// The site in Debian's Chromium: read, searched, and checked by axe in light and dark mode, without
// requests to other hosts.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { site } from "../../.build/docs.ts";
import { axe, complaints, openBrowser, overflow } from "../console/browser.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css",
  ".js": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
};

/** Problems, one per line. */
export async function readSite(): Promise<string[]> {
  const files = site();
  const server = createServer((req, res) => {
    const path = decodeURIComponent((req.url ?? "/").slice(1).split("?")[0]!) || "index.html";
    const body = files.get(path);
    res.writeHead(body === undefined ? 404 : 200, {
      "content-type": TYPES[extname(path)] ?? "text/plain",
    });
    res.end(body instanceof URL ? readFileSync(body) : body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const browser = await openBrowser();
  const wrong: string[] = [];
  try {
    const pages = [...files.keys()].filter((path) => path.endsWith(".html"));
    for (const colorScheme of ["light", "dark"] as const) {
      const context = await browser.newContext({
        colorScheme,
        viewport: { width: 1200, height: 900 },
      });
      const page = await context.newPage();
      const found = complaints(page);
      page.on("request", (request) => {
        if (!request.url().startsWith(origin) && !request.url().startsWith("data:"))
          wrong.push(`asked for ${request.url()}`);
      });
      for (const path of pages) {
        await page.goto(`${origin}/${path}`);
        // The largest pages have thousands of cells, each of which axe would check twice.
        if (
          colorScheme === "light" ||
          path === "index.html" ||
          path === "guides/keys-and-budgets.html"
        )
          wrong.push(...(await axe(page)).map((line) => `${path} (${colorScheme}): ${line}`));
      }
      await page.goto(`${origin}/plugins/provider.html`);
      await page.keyboard.press("/");
      await page.keyboard.type("graceful shutdown");
      await page.waitForSelector("#found a");
      await page.keyboard.press("Enter");
      await page.waitForURL(/#/);
      if (!page.url().includes("guides/upgrade.html#graceful-shutdown"))
        wrong.push(`the search leads to ${page.url()}`);
      await page.setViewportSize({ width: 320, height: 640 });
      const { by, of } = await overflow(page);
      if (by > 0) wrong.push(`at 320 px ${by} px stick out: ${of.join(", ")}`);
      wrong.push(...found.map((line) => `console (${colorScheme}): ${line}`));
      await context.close();
    }
  } finally {
    await browser.close();
    server.close();
  }
  return wrong;
}
