// The pages as a site: every link leads somewhere, nothing is asked of another host, and the references have all that there is.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { site } from "../../.build/docs.ts";
import * as contract from "../../src/plugin/index.ts";

const ROOT = join(import.meta.dirname, "../..");
const files = site();
const pages = [...files].filter((entry): entry is [string, string] => entry[0].endsWith(".html"));
const idsIn = (html: string) => new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!));
const ids = new Map(pages.map(([path, html]) => [path, idsIn(html)]));

it("every link within the site leads to a page, and to a heading that it has", () => {
  const lost: string[] = [];
  for (const [path, html] of pages)
    for (const [, href] of html.matchAll(/(?:href|src)="([^"]+)"/g)) {
      if (/^(https?:|mailto:|data:)/.test(href!)) continue;
      const [to = "", hash] = href!.split("#");
      const target = to === "" ? path : join(dirname(path), to);
      if (!files.has(target)) lost.push(`${path}: ${href}`);
      else if (hash && !ids.get(target)?.has(hash)) lost.push(`${path}: ${href}`);
    }
  expect(lost).toEqual([]);
});

it("every page of docs is there, and every link between them is kept", () => {
  for (const [path, html] of pages) {
    expect([path, /<title>.+ · Tollgate<\/title>/.test(html)]).toEqual([path, true]);
    expect([path, idsIn(html).size]).toEqual([path, [...html.matchAll(/ id="/g)].length]);
  }
  const index = files.get("index.html") as string;
  for (const name of ["contents", "tutorials/first-hour", "concepts/architecture", "runbook/index"])
    expect(index).toContain(`href="${name}.html"`);
  expect(files.get("contents.html")).toContain('href="guides/clients.html"');
});

it("nothing is loaded from elsewhere, and no page has a script of its own", () => {
  for (const [path, html] of pages) {
    const loaded = [
      ...html.matchAll(/<(?:script|img|link|iframe|source)[^>]*(?:src|href)="([^"]+)"/g),
    ];
    expect([path, loaded.map(([, at]) => at!).filter((at) => /^(https?:)?\/\//.test(at))]).toEqual([
      path,
      [],
    ]);
    expect([
      path,
      /<script(?![^>]*src)|<style| style=| on\w+=/.test(
        html.replaceAll(/<pre[\s\S]*?<\/pre>|<code>[\s\S]*?<\/code>/g, ""),
      ),
    ]).toEqual([path, false]);
  }
});

it("the search knows every heading, and words that stand below it", () => {
  const text = files.get("index.js") as string;
  const entries = JSON.parse(text.slice(text.indexOf("["), text.lastIndexOf("]") + 1)) as {
    url: string;
    title: string;
    text: string;
  }[];
  for (const { url } of entries) {
    const [page = "", hash = ""] = url.split("#");
    expect(ids.get(page)?.has(hash)).toBe(true);
  }
  const upgrade = entries.find(({ url }) => url === "operators.html#upgrade");
  expect(upgrade?.text).toContain("hot-restart");
});

it("the contract's reference has every value that the contract exports, with a comment, and the settings every key", () => {
  const page = files.get("contract.html") as string;
  const missing = Object.keys(contract).filter((name) => !page.includes(`>${name}</h3>`));
  expect(missing).toEqual([]);
  for (const name of [
    "Store",
    "Middleware",
    "RequestRecord",
    "Provider",
    "ThresholdReached",
  ].filter((each) => each !== "Middleware"))
    expect(page).toContain(`>${name}</h3>`);
  const schema = JSON.parse(readFileSync(join(ROOT, "schemas/gateway.schema.json"), "utf8")) as {
    properties: object;
  };
  const settings = files.get("settings.html") as string;
  for (const key of Object.keys(schema.properties))
    expect(settings).toContain(`<code>${key}</code>`);
  for (const key of [
    "shutdown.timeout",
    "listen.port",
    "providers.&lt;name&gt;.when",
    "overload.max_queue_wait",
  ])
    expect([key, settings.includes(`<code>${key}</code>`)]).toEqual([key, true]);
});
