// `npm run docs`: builds docs/ as a static site in site/. Pages are found by folder, and
// docs/README.md gives their order. The search needs no server, and no page loads anything from
// another host.
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { framed, rendered, type SitePage } from "./site/pages.ts";

const ROOT = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** Sections of the menu, by the folder of their pages. */
const SECTIONS: Readonly<Record<string, string>> = {
  tutorials: "Tutorials",
  guides: "How-to guides",
  reference: "Reference",
  concepts: "Concepts",
  plugins: "Plugins",
  runbook: "Runbook",
};
const INDEX = "docs/README.md";

/** Pages for contributors, which the package and so the index of docs do not have. */
const CONTRIBUTORS = [
  "CONTRIBUTING.md",
  "SECURITY.md",
  "src/README.md",
  "src/protocols/README.md",
  ...globSync("src/protocols/*/README.md", { cwd: ROOT }).toSorted(),
  "plugins/stores/README.md",
  "CHANGELOG.md",
];

/** Returns the files that the index of docs lists, with the headings that they are listed below. */
export function indexed(): (readonly [file: string, section: string])[] {
  let section = "";
  return read(INDEX)
    .split("\n")
    .flatMap((line) => {
      section = /^## (.+)/.exec(line)?.[1] ?? section;
      const file = /^\| \[[^\]]+\]\(([^)]+)\)/.exec(line)?.[1];
      return file === undefined ? [] : [[join("docs", file), section] as const];
    });
}

interface SourcePage {
  readonly file: string;
  readonly url: string;
  readonly section: string;
  /** Folder below the section's folder: "configuration". Empty for a page of the section itself. */
  readonly folder: string;
}

/** Returns the folder of a page. A page next to a folder of its name is the folder's first page. */
function folderOf(file: string): string {
  const own = file.replace(/\.md$/, "");
  const path = existsSync(join(ROOT, own)) ? own : dirname(file);
  return path.split("/").slice(2).join("/");
}

const sourcePage = (file: string, section: string): SourcePage => ({
  file,
  section,
  folder: file.startsWith("docs/") ? folderOf(file) : "",
  url: file
    .replace(/^docs\/README\.md$/, "contents.html")
    .replace(/^docs\//, "")
    .replace(/^((?:reference|runbook|guides|plugins\/examples).*)\/README\.md$/, "$1/index.html")
    .replace(/^README\.md$/, "index.html")
    .replace(/(\/README)?\.md$/, ".html"),
});

/** Text by which pages are sorted: a folder's README comes first, then its pages by name. */
const sortKey = (file: string): string => file.replace(/README\.md$/, "").replace(/\.md$/, "");

/** Returns all pages, in the order of the menu: first those that the index lists. */
function sourcePages(): SourcePage[] {
  const listed = indexed();
  const known = new Set([INDEX, ...listed.map(([file]) => file)]);
  const found = globSync("docs/**/*.md", { cwd: ROOT })
    .filter((file) => !known.has(file))
    .toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))
    .map((file) => [file, SECTIONS[file.split("/")[1]!] ?? "How-to guides"] as const);
  const all = [...listed, ...found];
  const sections = Object.values(SECTIONS);
  return [
    sourcePage("README.md", "Start"),
    sourcePage(INDEX, "Start"),
    ...sections.flatMap((section) => {
      const own = all
        .filter(([, each]) => each === section)
        .map(([file]) => sourcePage(file, section));
      // Pages of a folder follow each other, whether or not the index lists them.
      return [...Map.groupBy(own, ({ folder }) => folder).values()].flat();
    }),
    ...CONTRIBUTORS.map((file) => sourcePage(file, "Contributing")),
  ];
}

/** Returns all pages and other files of the site, by path. */
export function site(): ReadonlyMap<string, string | URL> {
  const sources = sourcePages();
  const urls = new Map(sources.map(({ file, url }) => [file, url]));
  const files = new Map<string, string | URL>();
  const linkFrom = (file: string, url: string) => (href: string) => {
    const [path = "", hash] = href.split("#");
    if (path === "") return `#${hash}`;
    const to = join(dirname(file), path);
    const here = dirname(url);
    const known = urls.get(to);
    if (known) return `${relative(here, known)}${hash === undefined ? "" : `#${hash}`}`;
    if (!/\.(png|svg|txt)$/.test(to) || !existsSync(join(ROOT, to))) return undefined;
    const target = to.endsWith(".txt")
      ? to.replace(/^docs\//, "")
      : `pictures/${to.replaceAll("/", "-")}`;
    files.set(target, new URL(`../${to}`, import.meta.url));
    return relative(here, target);
  };
  const pages: SitePage[] = sources.map(({ file, url, section, folder }) =>
    rendered({ url, section, folder, text: read(file) }, linkFrom(file, url)),
  );
  for (const page of pages) files.set(page.url, framed(page, pages));
  const entries = pages.flatMap(({ url, section, title: page, parts }) =>
    parts.map(({ id, title, text }) => ({
      url: `${url}#${id}`,
      page: `${section} · ${page}`,
      title,
      text: text.slice(0, 2_000),
    })),
  );
  files.set("index.js", `globalThis.tollgatePages = ${JSON.stringify(entries)};\n`);
  for (const name of ["look.css", "search.js"])
    files.set(name, new URL(`site/${name}`, import.meta.url));
  return files;
}

if (import.meta.main) {
  const out = join(ROOT, "site");
  rmSync(out, { recursive: true, force: true });
  const files = site();
  for (const [path, body] of files) {
    const to = join(out, path);
    mkdirSync(dirname(to), { recursive: true });
    if (typeof body === "string") writeFileSync(to, body);
    else cpSync(body, to);
  }
  console.log(`site: ${files.size} files; open site/index.html`);
}
