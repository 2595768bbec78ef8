// The site: every link has a target, no page loads anything from another host, and the menu and the search have every page.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { site } from "../../.build/docs.ts";
import * as contract from "../../src/plugin/index.ts";

const ROOT = join(import.meta.dirname, "../..");
const files = site();
const pages = [...files].filter((entry): entry is [string, string] => entry[0].endsWith(".html"));
const idsIn = (html: string) => new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!));
const ids = new Map(pages.map(([path, html]) => [path, idsIn(html)]));

it("every link within the site points to an existing page and heading", () => {
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

it("contains every page of docs, in its section, with a unique title", () => {
  for (const [path, html] of pages) {
    expect([path, /<title>.+ · Tollgate<\/title>/.test(html)]).toEqual([path, true]);
    expect([path, idsIn(html).size]).toEqual([path, [...html.matchAll(/ id="/g)].length]);
  }
  const menu = /<nav class="menu"[\s\S]*?<\/nav>/.exec(files.get("index.html") as string)![0];
  const linked = new Set([...menu.matchAll(/href="([^"]+)"/g)].map(([, href]) => href!));
  expect(pages.map(([path]) => path).filter((path) => !linked.has(path))).toEqual([]);
  const sections = [...menu.matchAll(/<details(?: open)?><summary>([^<]+)/g)].map(
    ([, name]) => name,
  );
  for (const name of ["Reference", "Plugins", "Runbook", "Contributing", "CLI", "Configuration"])
    expect(sections).toContain(name);
  expect(existsSync(join(ROOT, "docs/reference/configuration/listen.md"))).toBe(true);
  expect(linked).toContain("reference/configuration/listen.html");
});

it("no page skips a level of headings", () => {
  const skipped = pages.flatMap(([path, html]) => {
    const main = /<main[\s\S]*?<\/main>/.exec(html)?.[0] ?? "";
    const headings = [...main.matchAll(/<h([1-6])[^>]*>(.*?)<\/h\1>/g)];
    expect([path, headings.length > 0]).toEqual([path, true]);
    return headings
      .filter(([, level], i) => Number(level) > Number(headings[i - 1]?.[1] ?? 0) + 1)
      .map(([, , text]) => `${path}: ${text}`);
  });
  expect(skipped).toEqual([]);
});

it("the pages of a section link to the next and the previous one", () => {
  const next = (path: string) =>
    /<a rel="next" href="([^"]+)"/.exec(files.get(path) as string)?.[1];
  const first = "reference/configuration/index.html";
  const seen: string[] = [];
  for (let at: string | undefined = first; at !== undefined && !seen.includes(at);) {
    seen.push(at);
    const to = next(at);
    at = to === undefined ? undefined : join(dirname(at), to);
  }
  expect(seen.length).toBeGreaterThan(20);
  expect(files.get(seen[1]!)).toContain('<a rel="prev"');
});

it("loads nothing from other hosts, and no page has its own script", () => {
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

it("the search index contains every heading with its text", () => {
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
  const restart = entries.find(({ title }) => title === "tollgate hot-restart");
  expect(restart?.text).toContain("SIGUSR2");
  expect(entries.map(({ title }) => title)).toContain("listen.port");
});

it("the plugin API lists every value that the contract exports", () => {
  const api = pages.filter(([path]) => path.startsWith("reference/plugin-api/"));
  const missing = Object.keys(contract).filter(
    (name) => !api.some(([, html]) => html.includes(`>${name}</h2>`)),
  );
  expect(missing).toEqual([]);
});
